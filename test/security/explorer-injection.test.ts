// @module-tag slow: every page in a browser, with every hostile text
/**
 * Markup in everything that the explorer and the documentation show: what chains and records say, and what stands in the
 * URL: every text, page and parameter is tried.
 */
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { searchParameterNames } from '../../src/domain/filters/search-parameters.ts';
import type { Message, NetworkInfo } from '../../src/domain/message.ts';
import { serverForAll } from '../api/running-server.ts';
import { eventually, hasChromium, overhang, rowsOf, useBrowser } from '../browser/chromium.ts';
import { recentMessage } from '../browser/recent-messages.ts';
import { fuji, makeToken, makeVerifier, sepolia } from '../fixtures.ts';

/** What shows on a page where one of these is taken for markup, an attribute, a script or a link. */
const MARK = 'data-owned';
const payloads = [
  `<i ${MARK}>x</i>`,
  `"><i ${MARK} x="`,
  `'><i ${MARK} x='`,
  `</title></script></style></textarea><i ${MARK}>`,
  `<img src=x ${MARK} onerror="window.owned=1">`,
  `<svg ${MARK} onload="window.owned=1">`,
  `<script>window.owned=1</script>`,
  `" ${MARK} onfocus="window.owned=1" autofocus x="`,
  'javascript:window.owned=1',
  `{{constructor.constructor('window.owned=1')()}}`,
  `&lt;i ${MARK}&gt;`,
  `%3Ci%20${MARK}%3E`,
  `\u2028<i ${MARK}>\u202e`,
];
const all = payloads.join(' ');
/** One text with all of them, or each for itself too. */
const texts = process.env.LANESCAN_TEST_SCALE === 'full' ? [all, ...payloads] : [all];

const named = (network: NetworkInfo, payload: string): NetworkInfo => ({
  ...network,
  name: payload.slice(0, 200),
  displayName: payload.slice(0, 200),
});

/** A record that says a payload wherever a record takes free text. */
function hostile(number: number, payload: string, overrides: Partial<Message> = {}): Message {
  const data = `0x${Buffer.from(payload).toString('hex')}`;
  const logoUrl = "https://evil.example/?'onerror='window.owned=1";
  return recentMessage(number, number, {
    sourceNetworkInfo: named(sepolia, payload),
    destNetworkInfo: named(fuji, payload),
    version: '2.0.0',
    data,
    tokenAmounts: [{ ...makeToken(sepolia, fuji, 'LINK'), extraData: data }],
    verifiers: {
      items: [{ ...makeVerifier('x'), metadata: { name: payload, logoUrl } }],
      optionalThreshold: 0,
    },
    ...overrides,
  });
}

const messages = [
  ...payloads.map((payload, index) => hostile(index + 1, payload, { status: 'FAILED' })),
  hostile(50, all, { status: 'SUCCESS' }),
];

/** Nothing ran, nothing became an element or an attribute, and no link leads to a script. */
async function expectHarmless(page: Page, what: string): Promise<void> {
  const found = await page.evaluate<unknown>(`({
    ran: window.owned ?? null,
    marked: document.querySelectorAll('[${MARK}]').length,
    handlers: [...document.querySelectorAll('*')].flatMap((element) =>
      element.getAttributeNames().filter((name) => name.startsWith('on'))),
    links: [...document.querySelectorAll('[href], [src], [action]')]
      .flatMap((element) => ['href', 'src', 'action'].map((name) => element.getAttribute(name) ?? ''))
      .filter((link) => /^\\s*(javascript|vbscript|data:text)/i.test(link)),
  })`);
  expect({ what, found }).toEqual({ what, found: { ran: null, marked: 0, handlers: [], links: [] } });
}

describe.skipIf(!hasChromium)('markup that others wrote stays text', () => {
  const browser = useBrowser();
  const server = serverForAll(messages);

  const settle = async (page: Page) => {
    await page.locator('main').waitFor();
    await page.waitForLoadState('networkidle');
  };
  const open = async (at: string) => {
    const opened = await browser.open(server, at);
    // Some of these are meant to be rejected by the API.
    opened.forgive(/status of 4\d\d/);
    await settle(opened.page);
    return opened.page;
  };
  /** Looks at each of these paths, in which HERE is the text. */
  const visit = async (paths: readonly string[], isExplorer = true) => {
    const page = await open('/');
    for (const text of texts) {
      for (const at of paths) {
        await page.goto(`${server.url}${at.replaceAll('HERE', encodeURIComponent(text))}`);
        if (isExplorer) await settle(page);
        await expectHarmless(page, at);
      }
    }
  };

  test.each([
    '/',
    '/overview',
    '/failure',
    '/lane',
    `/lane/${sepolia.chainSelector}/${fuji.chainSelector}`,
    '/network',
    '/network?show=all',
  ])('from records, on %s', async (at) => {
    const page = await open(at);
    if (at === '/') {
      await rowsOf(page).first().waitFor();
      await page.setViewportSize({ width: 320, height: 700 });
      expect(await overhang(page)).toBeLessThanOrEqual(0);
    }
    // Otherwise none of the words were there to be taken for anything. Networks go by the names that we know.
    if (!at.startsWith('/network')) await eventually(() => page.locator('main').innerText()).toContain(MARK);
    await expectHarmless(page, at);
  });

  test('from records, on the page of a message with every word unfolded', async () => {
    for (const { messageId } of [0, 4, -1].flatMap((index) => messages.at(index) ?? [])) {
      const page = await open(`/message/${messageId}`);
      await page.getByRole('heading', { name: 'Source' }).waitFor();
      await page.getByText('Raw record').click();
      for (const name of ['Text', 'Hex', 'ABI']) {
        const way = page.getByRole('radio', { name });
        if ((await way.count()) > 0) await way.first().check();
      }
      await expectHarmless(page, messageId);
      // What would turn the direction of a text is shown as a mark.
      expect(await page.locator('main').innerText()).not.toContain('\u202e');
      expect(await page.title()).toMatch(/^(Failed|Success)/);
    }
  });

  test('from the URL: every parameter of the search, and names that it does not have', async () => {
    const filters = searchParameterNames.filter((name) => name !== 'cursor').map((name) => `${name}=HERE`);
    const queries = [
      `cursor=HERE&${filters.join('&')}`,
      filters.join('&'),
      'cursor=HERE',
      'q=HERE',
      'show=HERE&HERE=HERE',
    ];
    await visit(queries.map((query) => `/?${query}#HERE`));
  });

  test('from the URL: every part of a path', () =>
    visit(['/message/HERE', '/lane/HERE/HERE', '/lane?sort=HERE', '/network?show=HERE']));

  test('from the search box', async () => {
    const page = await open('/');
    const box = page.getByRole('combobox').or(page.getByRole('searchbox')).first();
    for (const payload of texts) {
      await box.fill(payload);
      await expectHarmless(page, `typing ${payload}`);
      await box.press('Enter');
      await page.locator('main').waitFor();
      await expectHarmless(page, `asking for ${payload}`);
    }
  });

  test('on pages for programs, whatever they are asked', () =>
    visit(['/docs?HERE', '/v2/messages?sender=HERE', '/v2/messages/HERE', '/HERE', '/assets/HERE'], false));
});

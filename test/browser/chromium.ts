/** A real Chromium, and pages in it whose console and requests are watched. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { RunningServer } from '../api/running-server.ts';
import { installedProgram } from '../installed-program.ts';

const repository = path.resolve(import.meta.dirname, '../..');

const knownPlaces = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

const place = installedProgram('chromium', knownPlaces, 'chromium', 'the tests in test/browser');
export const hasChromium = place !== undefined;

/** Builds the explorer unless it is newer than its source. */
export function buildExplorer(): void {
  execFileSync(process.execPath, ['scripts/build-explorer.mjs'], {
    cwd: repository,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

/** On a busy machine a read can wait too long for the database: the server rejects it, and the page asks again. */
const SHED_LOAD = /status of 503/;

/**
 * A browser for the tests of a file. After each test its pages are closed, and must have had nothing to complain
 * about: a clean console, and no request to another server, is everybody's claim.
 */
export function useBrowser() {
  let browser: Browser;
  const opened: {
    readonly page: Page;
    readonly complaints: readonly string[];
    forgiven: RegExp | undefined;
  }[] = [];
  beforeAll(async () => {
    buildExplorer();
    browser = await chromium.launch({
      ...(place !== undefined && { executablePath: place }),
      args: ['--disable-background-networking', ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])],
    });
  });
  afterAll(() => browser?.close());
  afterEach(async () => {
    const pages = opened.splice(0);
    await Promise.all(pages.map(({ page }) => page.context().close()));
    const unforgiven = pages.flatMap(({ complaints, forgiven }) =>
      complaints.filter((complaint) => !forgiven?.test(complaint) && !SHED_LOAD.test(complaint)),
    );
    expect(unforgiven).toEqual([]);
  });

  return {
    async open(server: Pick<RunningServer, 'url'>, at = '/', options: BrowserContextOptions = {}) {
      const context = await browser.newContext({
        viewport: { width: 1280, height: 800 },
        reducedMotion: 'reduce',
        permissions: ['clipboard-read', 'clipboard-write'],
        ...options,
      });
      context.setDefaultTimeout(60_000);
      const page = await context.newPage();
      const complaints: string[] = [];
      page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
      });
      page.on('pageerror', (error) => complaints.push(error.message));
      page.on('request', (request) => {
        if (!request.url().startsWith(server.url) && !request.url().startsWith('data:'))
          complaints.push(request.url());
      });
      const watched = { page, complaints, forgiven: undefined as RegExp | undefined };
      opened.push(watched);
      await page.goto(`${server.url}${at}`);
      return {
        page,
        /** Expects complaints of this kind, which the test provokes. */
        forgive: (kind: RegExp) => {
          watched.forgiven = kind;
        },
      };
    },
  };
}

/** What a page comes to, however busy the machine is. */
export const eventually = <T>(look: () => T) => expect.poll(look, { timeout: 60_000 });

/** Rows of a list of messages, without the placeholders that stand there until they come. */
export const rowsOf = (page: Page) => page.locator('.rows li.row');

export const copied = (page: Page) => page.evaluate<string>('navigator.clipboard.readText()');

/** How many pixels the page is wider than its window. */
export const overhang = (page: Page) =>
  page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');

/**
 * Pictures of an element in both colour schemes, for the documentation: of what only a lab can show. Taken where
 * LANESCAN_SCREENSHOTS names a folder, and nothing otherwise.
 */
export async function takePictures(page: Page, selector: string, name: string): Promise<void> {
  const folder = process.env.LANESCAN_SCREENSHOTS;
  const box = folder === undefined ? null : await page.locator(selector).boundingBox();
  if (folder === undefined || box === null) return;
  const session = await page.context().newCDPSession(page);
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme });
    const { data } = await session.send('Page.captureScreenshot', {
      format: 'webp',
      quality: 80,
      captureBeyondViewport: true,
      clip: { ...box, scale: 1.5 },
    });
    writeFileSync(path.join(folder, `${name}-${colorScheme}.webp`), Buffer.from(data, 'base64'));
  }
}

const axeSource = readFileSync(path.join(repository, 'node_modules/axe-core/axe.min.js'), 'utf8');

/** What axe finds serious or critical on a page, in a line each; by all rules unless some are named. */
export async function seriousProblems(page: Page, rules?: readonly string[]): Promise<readonly string[]> {
  // Evaluated by the debugger, which the page's policy does not bind.
  await page.evaluate(axeSource);
  return page.evaluate<
    readonly string[]
  >(`axe.run(document, ${JSON.stringify({ resultTypes: ['violations'], ...(rules && { runOnly: rules }) })}).then(({ violations }) =>
    violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ' ' + target.join(' ') + ' ' + failureSummary)))`);
}

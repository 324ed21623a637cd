/** What `webhooks` in lanescan.yaml may hold. */
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseSubscriptions, shownTarget } from '../../src/webhooks/subscription.ts';
import { operatorErrorOf } from '../operator-error.ts';
import { SECRET } from './receiver.ts';

const environment = {
  S: SECRET,
  TOKEN: 'hidden-token',
  BAD: 'whsec_c2hvcnQ=',
  PLAIN: 'hunter2hunter2',
  EMPTY: ' ',
};
/** Variables are written %{NAME} here: the linter takes the real spelling for a template that was forgotten. */
const read = (yaml: string) =>
  parseSubscriptions(parse(yaml.replaceAll('%{', '${')), 'lanescan.yaml', environment);
const valid = 'name: a, url: "https://example.org/hook", secret: "%{S}"';

test('a subscription has a name, a target with variables filled in, keys and the filters of the search', () => {
  const [subscription] = read(`
- name: ops-alerts
  url: https://example.org/\${TOKEN}?x=1#part
  secret: \${S}
  filters: { status: "FAILED", sourceChainSelector: "16015286601757825753", readyForManualExecOnly: true }`);
  expect(subscription).toMatchObject({
    name: 'ops-alerts',
    filters: {
      status: ['FAILED'],
      sourceChainSelector: '16015286601757825753',
      readyForManualExecOnly: true,
    },
    allowPrivate: false,
  });
  expect(subscription?.url.href).toBe('https://example.org/hidden-token?x=1');
  expect(subscription?.keys.map((key) => key.toString())).toEqual(['a key of thirty-two bytes, or so']);
  expect(subscription && shownTarget(subscription)).toBe('https://example.org/…');
});

test('no webhooks are no mistake', () => {
  expect([undefined, null, []].map((value) => parseSubscriptions(value, 'f', {}))).toEqual([[], [], []]);
});

test.each([
  ['something else than a list', 'a: 1', /webhooks in lanescan.yaml is not a list/],
  ['too many', JSON.stringify(Array(101).fill({})), /webhooks .* not a list of at most 100 subscriptions/],
  ['an entry without keys', '- text', /webhooks\[0\] in lanescan.yaml does not hold keys and values/],
  [
    'an unknown key',
    `- {${valid}, filter: {}}`,
    /webhooks\[0\] .* unknown key "filter".*Did you mean filters\?/,
  ],
  ['no name', '- url: x', /webhooks\[0\]\.name .* is not a name/],
  ['a bad name', '- name: Ops Alerts', /webhooks\[0\]\.name .* lower-case letters/],
  ['two of one name', `- {${valid}}\n- {${valid}}`, /webhooks\[0\] and webhooks\[1\] .* both named a/],
  ['no URL', '- {name: a, url: "nowhere"}', /webhooks\[0\]\.url .* is not a URL/],
  ['another protocol', '- {name: a, url: "ftp://x/"}', /url .* begins with ftp:/],
  ['a password in the URL', '- {name: a, url: "https://u:hidden@x/"}', /url .* holds a user or a password/],
  [
    'a missing variable in the URL',
    '- {name: a, url: "https://x/%{NOPE}"}',
    /url .* needs the variable NOPE/,
  ],
  ['a loopback target', '- {name: a, url: "http://127.0.0.1/"}', /points at 127.0.0.1, .*allowPrivate: true/],
  ['a target on localhost', '- {name: a, url: "http://LOCALHOST./"}', /points at localhost/],
  ['a disguised loopback target', '- {name: a, url: "http://0x7f000001/"}', /points at 127.0.0.1/],
  [
    'a mapped loopback target',
    '- {name: a, url: "http://[::ffff:127.0.0.1]/"}',
    /points at \[::ffff:7f00:1\]/,
  ],
  ['the metadata of a cloud', '- {name: a, url: "http://169.254.169.254/"}', /points at 169.254.169.254/],
  ['no secret', '- {name: a, url: "https://x.org"}', /secret .* is missing.*environment only/],
  [
    'a secret in the file',
    `- {name: a, url: "https://x.org", secret: ${SECRET}}`,
    /secret .* is written out/,
  ],
  [
    'an unset secret',
    '- {name: a, url: "https://x.org", secret: "%{NOPE}"}',
    /secret .* needs the variable NOPE/,
  ],
  ['an empty secret', '- {name: a, url: "https://x.org", secret: "%{EMPTY}"}', /needs the variable EMPTY/],
  [
    'a short secret',
    '- {name: a, url: "https://x.org", secret: "%{BAD}"}',
    /from BAD, which holds no secret/,
  ],
  [
    'a password as secret',
    '- {name: a, url: "https://x.org", secret: "%{PLAIN}"}',
    /from PLAIN, which holds no/,
  ],
  ['allowPrivate as text', `- {${valid}, allowPrivate: "yes"}`, /allowPrivate .* is neither true nor false/],
  ['filters as a list', `- {${valid}, filters: []}`, /filters .* does not hold keys/],
  [
    'an unknown filter',
    `- {${valid}, filters: {stauts: FAILED}}`,
    /filters .*"stauts".*Did you mean status\?/,
  ],
  ['a page as filter', `- {${valid}, filters: {limit: "5"}}`, /filters .* unknown key "limit"/],
  [
    'a wrong value',
    `- {${valid}, filters: {status: LOST}}`,
    /webhooks\[0\]\.filters\.status in lanescan.yaml .*SENT/,
  ],
  [
    'a rounded selector',
    `- {${valid}, filters: {sourceChainSelector: 16015286601757825753}}`,
    /filters.sourceChainSelector .* quotes/,
  ],
])('%s is told with its place, and without secrets', async (_what, yaml, expected) => {
  const { message, remedy } = await operatorErrorOf(() => read(yaml));
  expect(`${message} ${remedy}`).toMatch(expected);
  expect(`${message} ${remedy}`).not.toMatch(/hidden|hunter2|YSBrZXkg/);
});

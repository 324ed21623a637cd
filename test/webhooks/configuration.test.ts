/** What `webhooks` in lanescan.yaml may hold. */
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readSetting } from '../../src/base/settings.ts';
import { shownTarget, webhooksSetting } from '../../src/webhooks/subscription.ts';
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
  readSetting(webhooksSetting, parse(yaml.replaceAll('%{', '${')), ['webhooks'], environment);
const at = (url: string) => `- {name: a, url: "${url}", secret: "%{S}"}`;
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

test.each([
  ['something else than a list', 'a: 1', /webhooks is not a list/],
  ['too many', JSON.stringify(Array(101).fill({})), /webhooks has 101 entries.*at most 100 entries/],
  ['an entry without keys', '- text', /webhooks\[0\] is not a mapping of keys to values/],
  [
    'an unknown key',
    `- {${valid}, filter: {}}`,
    /webhooks\[0\]\.filter is an unknown key.*Did you mean filters\?/,
  ],
  ['no name', '- {url: "https://x.org", secret: "%{S}"}', /webhooks\[0\]\.name is missing/],
  ['a bad name', '- name: Ops Alerts', /webhooks\[0\]\.name .* lower-case letters/],
  ['two of one name', `- {${valid}}\n- {${valid}}`, /webhooks\[1\] is the same as webhooks\[0\]/],
  ['no URL', '- {name: a, url: "nowhere"}', /webhooks\[0\]\.url is not a URL/],
  ['another protocol', '- {name: a, url: "ftp://x/"}', /url begins with ftp:/],
  ['a password in the URL', '- {name: a, url: "https://u:hidden@x/"}', /url holds a user or a password/],
  ['a missing variable in the URL', '- {name: a, url: "https://x/%{NOPE}"}', /url needs the variable NOPE/],
  ['a loopback target', at('http://127.0.0.1/'), /points at 127.0.0.1, .*allowPrivate: true/],
  ['a target on localhost', at('http://LOCALHOST./'), /points at localhost/],
  ['a disguised loopback target', at('http://0x7f000001/'), /points at 127.0.0.1/],
  ['a mapped loopback target', at('http://[::ffff:127.0.0.1]/'), /points at \[::ffff:7f00:1\]/],
  ['the metadata of a cloud', at('http://169.254.169.254/'), /points at 169.254.169.254/],
  ['no secret', '- {name: a, url: "https://x.org"}', /secret is missing.*environment/],
  ['a secret in the file', `- {name: a, url: "https://x.org", secret: ${SECRET}}`, /secret is written out/],
  [
    'an unset secret',
    '- {name: a, url: "https://x.org", secret: "%{NOPE}"}',
    /secret needs the variable NOPE/,
  ],
  ['an empty secret', '- {name: a, url: "https://x.org", secret: "%{EMPTY}"}', /needs the variable EMPTY/],
  [
    'a short secret',
    '- {name: a, url: "https://x.org", secret: "%{BAD}"}',
    /from BAD, which does not hold a webhook secret/,
  ],
  [
    'a password as secret',
    '- {name: a, url: "https://x.org", secret: "%{PLAIN}"}',
    /from PLAIN, which does not hold/,
  ],
  ['allowPrivate as text', `- {${valid}, allowPrivate: "yes"}`, /allowPrivate is "yes".*true or false/],
  ['filters as a list', `- {${valid}, filters: []}`, /filters is not a mapping/],
  [
    'an unknown filter',
    `- {${valid}, filters: {stauts: FAILED}}`,
    /filters\.stauts is an unknown key.*Did you mean status\?/,
  ],
  ['a page as filter', `- {${valid}, filters: {limit: "5"}}`, /filters\.limit is an unknown key/],
  ['a wrong value', `- {${valid}, filters: {status: LOST}}`, /webhooks\[0\]\.filters\.status .*SENT/],
  [
    'a rounded selector',
    `- {${valid}, filters: {sourceChainSelector: 16015286601757825753}}`,
    /filters.sourceChainSelector .* quotes/,
  ],
])('an error about %s has its place, and no secrets', async (_what, yaml, expected) => {
  const { message, remedy } = await operatorErrorOf(() => read(yaml));
  expect(`${message} ${remedy}`).toMatch(expected);
  expect(`${message} ${remedy}`).not.toMatch(/hidden|hunter2|YSBrZXkg/);
});

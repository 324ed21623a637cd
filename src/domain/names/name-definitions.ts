/** Reads the `labels` and the `explorers` of lanescan.yaml. */
import { type Refuse, refusalsAt, refuseUnknownName } from '../../base/config-entries.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { addressBytes, parseAddress } from '../addresses.ts';
import { networkOfText } from '../networks/network-names.ts';
import type { Network } from '../networks/networks.ts';
import { cleanClaim } from './claimed-text.ts';
import { type Label, MAX_LABEL_CHARACTERS } from './labels.ts';

const KEYS = ['address', 'name', 'network'];
const MAX_LABELS = 1_000;

export function parseLabels(value: unknown, file: string): readonly Label[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > MAX_LABELS) {
    throw new OperatorError(
      `labels in ${file} is not a list of at most ${MAX_LABELS} labels.`,
      'Begin each with `- address: …`.',
    );
  }
  return value.map((entry, index) => parseLabel(entry, refusalsAt(`labels[${index}]`, file)));
}

function parseLabel(entry: unknown, refuse: Refuse): Label {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
    return refuse('', 'does not hold keys and values', `It takes ${KEYS.join(', ')}.`);
  const given = entry as Readonly<Record<string, unknown>>;
  for (const key of Object.keys(given)) refuseUnknownName(key, KEYS, refuse);
  const network = given.network === undefined || given.network === null ? null : networkIn(given, refuse);
  const text = typeof given.address === 'string' ? given.address.trim() : '';
  const spelling = network ? parseAddress(text, network.family) : anySpelling(text);
  if (!spelling)
    return refuse(
      'address',
      given.address === undefined ? 'is missing' : `is ${JSON.stringify(given.address)}`,
      `It takes an address${network ? ` on ${network.name}` : ''}, in quotes.`,
    );
  const { name } = given;
  if (typeof name !== 'string' || cleanClaim(name, MAX_LABEL_CHARACTERS) !== name.trim())
    return refuse(
      'name',
      name === undefined ? 'is missing' : `is ${JSON.stringify(name)}`,
      `It takes 1 to ${MAX_LABEL_CHARACTERS} printable characters.`,
    );
  return {
    name: name.trim(),
    bytes: spelling.bytes,
    address: spelling.text,
    network: network?.selector ?? null,
  };
}

function anySpelling(text: string): { readonly bytes: string; readonly text: string } | undefined {
  const [bytes] = addressBytes(text);
  return bytes === undefined ? undefined : (parseAddress(text, 'EVM') ?? { bytes, text });
}

function networkIn(given: Readonly<Record<string, unknown>>, refuse: Refuse): Network {
  return (
    networkOfText(String(given.network)) ??
    refuse(
      'network',
      `is ${JSON.stringify(given.network)}`,
      'It takes the name, chain id or chain selector of a network, in quotes where it is a number.',
    )
  );
}

/** The block explorers by chain selector; null for `none`. */
export function parseBlockExplorers(value: unknown, file: string): ReadonlyMap<string, string | null> {
  if (value === undefined || value === null) return new Map();
  if (typeof value !== 'object' || Array.isArray(value)) {
    throw new OperatorError(
      `explorers in ${file} does not hold networks and websites.`,
      'Write a line for each: `avalanche-testnet-fuji: https://explorer.example`.',
    );
  }
  return new Map(
    Object.entries(value).map(([name, website]) => {
      const refuse = refusalsAt('explorers', file);
      const network = networkOfText(name);
      if (!network)
        return refuse(
          '',
          `names ${JSON.stringify(name)}, which is not a network`,
          'It takes names of networks.',
        );
      return [network.selector, website === 'none' ? null : parseWebsite(website, name, refuse)];
    }),
  );
}

/** Without a slash at its end. */
export function parseWebsite(value: unknown, key: string, refuse: Refuse): string {
  const text = typeof value === 'string' ? value.trim() : '';
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !['https:', 'http:'].includes(url.protocol) || url.username !== '' || url.search !== '')
    return refuse(key, 'is not the address of a website', 'Write it as https://explorer.example.');
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

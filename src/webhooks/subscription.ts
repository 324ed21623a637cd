/** Webhook subscriptions as lanescan.yaml declares them. */
import {
  type Refuse,
  refusalsAt,
  refuseUnknownName,
  type Variables,
  variableOf,
  withVariables,
} from '../base/config-entries.ts';
import { OperatorError } from '../base/operator-error.ts';
import { ApiError } from '../domain/errors.ts';
import { filterNames } from '../domain/filters/filter-table.ts';
import type { Filters } from '../domain/filters/query.ts';
import { parseSearch } from '../domain/filters/search-parameters.ts';
import { isPublicAddress, literalAddress } from './public-address.ts';

export interface Subscription {
  readonly name: string;
  readonly url: URL;
  /** Keys that sign every delivery; several while they are being exchanged. Never shown. */
  readonly keys: readonly Buffer[];
  readonly filters: Filters;
  readonly allowPrivate: boolean;
}

const KEYS = ['name', 'url', 'secret', 'filters', 'allowPrivate'] as const;
/** Each has a lease and reads every change. */
const MAX_SUBSCRIPTIONS = 100;
const MAX_NAME_LENGTH = 60;
const MAKE_SECRET = `node -p '"whsec_" + crypto.randomBytes(32).toString("base64")'`;

/**
 * Reads the value of `webhooks`. Throws an OperatorError that names the place in the file.
 *
 * @param variables the environment, from which `${NAME}` takes its value
 */
export function parseSubscriptions(
  value: unknown,
  file: string,
  variables: Variables,
): readonly Subscription[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > MAX_SUBSCRIPTIONS) {
    throw new OperatorError(
      `webhooks in ${file} is not a list of at most ${MAX_SUBSCRIPTIONS} subscriptions.`,
      'Begin each with `- name: …`.',
    );
  }
  const subscriptions = value.map((entry, index) => parseSubscription(entry, index, file, variables));
  for (const [index, { name }] of subscriptions.entries()) {
    const first = subscriptions.findIndex((other) => other.name === name);
    if (first !== index) {
      throw new OperatorError(
        `webhooks[${first}] and webhooks[${index}] in ${file} are both named ${name}.`,
        'Give each a name of its own: what was delivered is remembered by it.',
      );
    }
  }
  return subscriptions;
}

function parseSubscription(entry: unknown, index: number, file: string, variables: Variables): Subscription {
  const refuse = refusalsAt(`webhooks[${index}]`, file);
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    return refuse('', 'does not hold keys and values', `It takes ${KEYS.join(', ')}.`);
  }
  for (const key of Object.keys(entry)) refuseUnknownName(key, KEYS, refuse);
  const { name, url, secret, filters, allowPrivate = false } = entry as Record<string, unknown>;
  if (typeof name !== 'string' || name.length > MAX_NAME_LENGTH || !/^[a-z0-9](-?[a-z0-9])*$/.test(name)) {
    return refuse(
      'name',
      'is not a name',
      `It takes lower-case letters, digits and single dashes between them, at most ${MAX_NAME_LENGTH}.`,
    );
  }
  if (typeof allowPrivate !== 'boolean') {
    return refuse('allowPrivate', 'is neither true nor false', 'Leave it out for targets on the internet.');
  }
  return {
    name,
    url: parseTarget(url, allowPrivate, variables, refuse),
    keys: parseSecret(secret, variables, refuse),
    filters: parseFilters(filters, refuse),
    allowPrivate,
  };
}

/** A URL may itself be a secret (many services put a token into the path), so that messages do not repeat it. */
function parseTarget(value: unknown, allowPrivate: boolean, variables: Variables, refuse: Refuse): URL {
  const text = typeof value === 'string' ? value : '';
  const filled = withVariables(text, 'url', variables, refuse);
  if (!URL.canParse(filled)) return refuse('url', 'is not a URL', 'Write it as https://example.org/hook.');
  const url = new URL(filled);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return refuse('url', `begins with ${url.protocol}`, 'It takes https:// or http://.');
  }
  if (url.username !== '' || url.password !== '') {
    return refuse('url', 'holds a user or a password', 'Take them out: the signature tells who sends.');
  }
  url.hash = '';
  const address = literalAddress(url);
  const isLocalName = /(^|\.)localhost\.?$/.test(url.hostname);
  if (!allowPrivate && (isLocalName || (address !== undefined && !isPublicAddress(address)))) {
    return refuse(
      'url',
      `points at ${url.hostname}, which is not on the internet`,
      'If that is meant, add `allowPrivate: true`.',
    );
  }
  return url;
}

/** Standard Webhooks asks for keys of 24 to 64 bytes. */
function parseSecret(value: unknown, variables: Variables, refuse: Refuse): readonly Buffer[] {
  const variable = typeof value === 'string' ? /^\$\{(\w+)\}$/.exec(value)?.[1] : undefined;
  if (variable === undefined) {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: that is how it is written
    const example = 'secret: ${OPS_WEBHOOK_SECRET}';
    return refuse(
      'secret',
      value === undefined ? 'is missing' : 'is written out',
      `Secrets come from the environment only: write \`${example}\` and set that variable.`,
    );
  }
  return variableOf(variable, 'secret', variables, refuse)
    .split(/\s+/)
    .map((secret) => {
      const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1] ?? '';
      const key = Buffer.from(encoded, 'base64');
      if (key.length >= 24 && key.length <= 64 && key.toString('base64') === encoded) return key;
      return refuse(
        'secret',
        `takes its value from ${variable}, which holds no secret of a webhook`,
        `Make one: ${MAKE_SECRET} (several are separated by spaces)`,
      );
    });
}

function parseFilters(value: unknown, refuse: Refuse): Filters {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) {
    return refuse('filters', 'does not hold keys and values', `It takes ${filterNames.join(', ')}.`);
  }
  const parameters = Object.entries(value).map(([name, given]): [string, string] => {
    refuseUnknownName(name, filterNames, refuse, 'filters');
    if (typeof given === 'string') return [name, given];
    if (typeof given === 'boolean') return [name, String(given)];
    // Unquoted, YAML reads a chain selector as a number and rounds it.
    return refuse(`filters.${name}`, 'is not text', 'Put the value in quotes.');
  });
  try {
    return parseSearch(parameters).filters;
  } catch (error) {
    const [first] = error instanceof ApiError ? error.details : [];
    if (first === undefined) throw error;
    return refuse(
      `filters.${first.parameter}`,
      first.problem,
      'Filters are the parameters of the search; see `lanescan search --help`.',
    );
  }
}

/** The target for people to see, without the path and query, which may be secret. */
export function shownTarget({ url }: Subscription): string {
  return url.pathname === '/' && url.search === '' ? url.origin : `${url.origin}/…`;
}

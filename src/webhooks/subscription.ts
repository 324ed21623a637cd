/** The setting `webhooks`: subscriptions to changes. */
import Type from 'typebox';
import { distinct, parseHttpUrl, refined, variableOf } from '../base/settings.ts';
import { ApiError } from '../domain/errors.ts';
import { filterNames } from '../domain/filters/filter-table.ts';
import type { Filters } from '../domain/filters/query.ts';
import { parseSearch } from '../domain/filters/search-parameters.ts';
import { isPublicAddress, literalAddress } from './sender.ts';

export interface Subscription {
  readonly name: string;
  readonly url: URL;
  /** Keys that sign every delivery; several while they are being exchanged. Never shown. */
  readonly keys: readonly Buffer[];
  readonly filters: Filters;
  readonly allowPrivate: boolean;
}

/** Each has a lease and reads every change. */
const MAX_SUBSCRIPTIONS = 100;
const MAX_NAME_LENGTH = 60;
const MAKE_SECRET = `node -p '"whsec_" + crypto.randomBytes(32).toString("base64")'`;
// biome-ignore lint/suspicious/noTemplateCurlyInString: that is how it is written
const EXAMPLE_SECRET = 'secret: ${OPS_WEBHOOK_SECRET}';

/** A URL may itself be a secret (many services put a token into the path), so errors do not repeat it. */
const target = refined(
  Type.String({
    writeOnly: true,
    description: `Where changes are sent; \`\${NAME}\` takes its value from the environment.`,
    takes: 'a URL such as https://example.org/hook',
  }),
  (text, context) => {
    const url = parseHttpUrl(text, context);
    if (url.username !== '' || url.password !== '')
      context.reject('holds a user or a password', 'Remove them: the signature identifies the sender.');
    return url;
  },
);

/** Standard Webhooks asks for keys of 24 to 64 bytes. */
const secret = refined(
  Type.String({
    writeOnly: true,
    description: `The variable of the environment that holds the secret: \`${EXAMPLE_SECRET}\`.`,
    takes: `a variable of the environment: \`${EXAMPLE_SECRET}\``,
  }),
  (text, context): readonly Buffer[] => {
    const variable =
      /^\$\{(\w+)\}$/.exec(text)?.[1] ??
      context.reject(
        'is written out',
        `Secrets come from the environment only: write \`${EXAMPLE_SECRET}\` and set that variable.`,
      );
    return variableOf(variable, context)
      .split(/\s+/)
      .map((secret) => {
        const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1] ?? '';
        const key = Buffer.from(encoded, 'base64');
        if (key.length >= 24 && key.length <= 64 && key.toString('base64') === encoded) return key;
        return context.reject(
          `takes its value from ${variable}, which does not hold a webhook secret`,
          `Make one: ${MAKE_SECRET} (several are separated by spaces)`,
        );
      });
  },
);

const filterValue = Type.Union([Type.String(), Type.Boolean()], { takes: 'text' });

const filters = refined(
  Type.Unsafe<Record<string, string | boolean>>({
    type: 'object',
    properties: Object.fromEntries(filterNames.map((name) => [name, filterValue])),
    additionalProperties: false,
    default: {},
    description: 'Parameters of the search, all of which must match.',
  }),
  (given, { reject }): Filters => {
    try {
      return parseSearch(Object.entries(given).map(([name, value]) => [name, String(value)])).filters;
    } catch (error) {
      const [first] = error instanceof ApiError ? error.details : [];
      if (first === undefined) throw error;
      return reject(
        first.problem,
        'Filters are the parameters of the search; see `lanescan search --help`.',
        first.parameter,
      );
    }
  },
);

const subscription = refined(
  Type.Object(
    {
      name: Type.String({
        maxLength: MAX_NAME_LENGTH,
        pattern: '^[a-z0-9](-?[a-z0-9])*$',
        description: 'Its name: what was delivered is remembered by it.',
        takes: `lower-case letters, digits and single dashes between them, at most ${MAX_NAME_LENGTH}`,
      }),
      url: target,
      secret,
      filters,
      allowPrivate: Type.Boolean({
        default: false,
        description: 'Whether the target may be in a private network.',
      }),
    },
    { additionalProperties: false },
  ),
  ({ secret, ...given }, { reject }): Subscription => {
    const { url, allowPrivate } = given;
    const address = literalAddress(url);
    const isLocalName = /(^|\.)localhost\.?$/.test(url.hostname);
    if (!allowPrivate && (isLocalName || (address !== undefined && !isPublicAddress(address))))
      reject(
        `points at ${url.hostname}, which is not on the internet`,
        'If that is meant, add `allowPrivate: true`.',
        'url',
      );
    return { ...given, keys: secret };
  },
);

export const webhooksSetting = distinct(
  Type.Array(subscription, {
    maxItems: MAX_SUBSCRIPTIONS,
    default: [],
    description: 'Subscriptions to changes; secrets come from the environment.',
    see: 'docs/api/webhooks.md',
  }),
  ({ name }) => name,
  'Give each its own name: what was delivered is remembered by it.',
);

/** The target for people to see, without the path and query, which may be secret. */
export function shownTarget({ url }: Subscription): string {
  return url.pathname === '/' && url.search === '' ? url.origin : `${url.origin}/…`;
}

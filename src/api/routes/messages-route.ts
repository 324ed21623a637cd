/** Message search, and one message by its id, at once or as soon as it has a status (long poll). */
import { ApiError } from '../../domain/errors.ts';
import { statusList } from '../../domain/filters/parameter-values.ts';
import { parseSearch, type RawParameters } from '../../domain/filters/search-parameters.ts';
import { type Status, statusRank } from '../../domain/lifecycle.ts';
import type { Message } from '../../domain/message.ts';
import type { StoredRecord } from '../../store/store.ts';
import type { Freshness } from '../server/caching.ts';
import type { Route, RouteContext } from '../server/route.ts';
import type { RouteRequest } from '../server/route-request.ts';
import { integer, parametersOf, searchQueryParameters } from './query-parameters.ts';
import { messageIdDigits, unknownMessage } from './requested-message.ts';
import { named, SearchResult } from './response-schema.ts';

const DEFAULT_WAIT_MS = 30_000;
const MAX_WAIT_MS = 60_000;

const waitParameters = parametersOf({
  waitFor: {
    description: 'Respond when the message has one of these statuses, separated by commas.',
    schema: { type: 'string' },
    example: 'SUCCESS,FAILED',
    parse: statusList,
  },
  timeoutMs: integer(
    'Respond after this many milliseconds in any case; only with `waitFor`.',
    1,
    MAX_WAIT_MS,
    DEFAULT_WAIT_MS,
  ),
});

export const messageRoutes: readonly Route[] = [
  {
    path: '/v2/messages',
    operationId: 'searchMessages',
    tag: 'Messages',
    summary: 'Search messages',
    description:
      'Messages that match every given filter, newest first (by send time, then by message id). A request uses ' +
      'either a cursor or filters, never both; `limit` and `view` go with either. A walk through the pages ' +
      'shows every message that matches throughout the walk exactly once, whatever arrives meanwhile. ' +
      'One exception: a message whose send time changes during the walk (a chain reorganisation puts it into ' +
      'another block) may be shown twice or not at all; the change stream reports every such change.',
    queryParameters: searchQueryParameters,
    success: { description: 'A page of messages.', schema: SearchResult, headers: ['Link'] },
    handle: ({ url, query }, { store, responseCache }) =>
      responseCache.get(url, async () => {
        const search = parseSearch(query, store.cursors);
        const { limit } = search;
        // The JSON around stored records, which are sent without parsing or serialising them.
        const { json, cursor, digest } = await store.search(search, {
          head: '{"data":[',
          tail: (cursor) =>
            `],"pagination":${JSON.stringify({ limit, hasNextPage: cursor !== null, cursor })}}`,
        });
        return { body: json, validator: digest, headers: nextPageLink(cursor, query) };
      }),
  },
  {
    path: '/v2/messages/{messageId}',
    operationId: 'getMessage',
    tag: 'Messages',
    summary: 'One message',
    description:
      'The whole record of one message. With `waitFor`, the response is sent as soon as the message has one of those ' +
      'statuses, instead of polling; a message that is not known yet may appear meanwhile. `X-Lanescan-Wait` says ' +
      'why it ended: `reached`; `passed` (the message is beyond all of them: steps can be skipped); ' +
      '`timeout`; or `stopping` (the server is shutting down: repeat the request). The record is the current one in every case.',
    queryParameters: waitParameters.declared,
    success: { description: 'The message.', schema: named('Message'), headers: ['X-Lanescan-Wait'] },
    errors: [404],
    variesBy: ['X-SDK-Version'],
    async validate(request, { store }) {
      // The stored digest is of the record as others than the SDK get it.
      const isStored = request.query.length === 0 && !isOfficialClient(request);
      const found = isStored ? await store.messageDigest(messageIdDigits(request.path)) : undefined;
      return found && { validator: found.digest, freshness: freshnessOf(found) };
    },
    async handle(request, context) {
      const wait = parseWait(request.query);
      const digits = messageIdDigits(request.path);
      const waited = wait && (await waitForStatus(digits, wait, request, context));
      if (waited?.record !== undefined) {
        const headers = {
          'X-Lanescan-Wait': waited.outcome,
          // During shutdown the server waits for open connections, and the client would keep this one alive.
          ...(waited.outcome === 'stopping' && { Connection: 'close' }),
        };
        return { body: waited.record, headers, freshness: 'never' };
      }
      const found = waited ? undefined : await context.store.findMessage(digits);
      if (!found) throw await unknownMessage(context.store, digits);
      const freshness = freshnessOf(found);
      const body = isOfficialClient(request) ? withoutNullVerifiers(found.record) : found.record;
      return { body, freshness, ...(body === found.record && { validator: found.digest }) };
    },
  },
];

/** The SDK names itself in this header. */
function isOfficialClient({ headers }: RouteRequest): boolean {
  return headers['x-sdk-version'] !== undefined;
}

/** The SDK reads the members of `verifiers` wherever the field is present, also where it is null. */
function withoutNullVerifiers(record: string): string {
  // These characters cannot occur inside a string; in this order only the record itself has the three members.
  return record.replace(/(,"finality":\d+),"verifiers":null,/, '$1,');
}

function parseWait(query: RawParameters) {
  const { waitFor, timeoutMs } = waitParameters.parse(query);
  if (waitFor) return { statuses: waitFor, timeoutMs: timeoutMs ?? DEFAULT_WAIT_MS };
  if (timeoutMs === undefined) return undefined;
  const problem = 'is only allowed with waitFor';
  throw new ApiError('INVALID_PARAMETERS', `timeoutMs ${problem}`, [{ parameter: 'timeoutMs', problem }]);
}

type WaitOutcome = 'reached' | 'passed' | 'timeout' | 'stopping';

/** Reads the database once, then waits for changes from the feed. The record is undefined for a message that is not there. */
async function waitForStatus(
  digits: string,
  { statuses, timeoutMs }: NonNullable<ReturnType<typeof parseWait>>,
  request: RouteRequest,
  { store, feed, live }: RouteContext,
): Promise<{ readonly record: string | undefined; readonly outcome: WaitOutcome }> {
  const furthest = Math.max(...statuses.map(statusRank));
  const outcomeOf = (status: Status) => {
    if (statuses.includes(status)) return 'reached';
    return statusRank(status) > furthest ? 'passed' : undefined;
  };
  /** The latest known record, from the database or from the feed. */
  let record: string | undefined;
  let hasFeedReported = false;
  let end: (outcome: WaitOutcome) => void = () => undefined;
  const ended = new Promise<WaitOutcome>((resolve) => {
    end = resolve;
  });

  const signal = request.signal();
  const releaseSlot = live.waiters.acquire(request.client);
  const timer = setTimeout(() => end('timeout'), timeoutMs);
  let stopFollowing: (() => void) | undefined;
  try {
    // Follows before it reads, so a change in between is not missed.
    stopFollowing = await feed.followMessage(`0x${digits}`, ({ recorded }) => {
      hasFeedReported = true;
      record = recorded.change === 'removed' ? undefined : recorded.record;
      const outcome = record === undefined ? undefined : outcomeOf(recorded.status);
      if (outcome) end(outcome);
    });
    const found = await store.findMessage(digits);
    if (found && !hasFeedReported) {
      record = found.record;
      const outcome = outcomeOf((JSON.parse(record) as Message).status);
      if (outcome) return { record, outcome };
    }
    if (signal.aborted) end('stopping');
    else signal.addEventListener('abort', () => end('stopping'), { once: true });
    const outcome = await ended;
    return { record, outcome };
  } finally {
    clearTimeout(timer);
    stopFollowing?.();
    releaseSlot();
  }
}

function freshnessOf({ settledAt }: Pick<StoredRecord, 'settledAt'>): Freshness {
  return settledAt === null ? 'moving' : { settledAt };
}

/** Many clients and proxies do not accept longer headers; the body has the cursor too. */
const MAX_LINK_LENGTH = 2_000;

/** Relative to the requested URL, so that it is valid behind any proxy; the cursor contains the filters. */
function nextPageLink(cursor: string | null, query: RawParameters): Record<string, string> {
  if (cursor === null) return {};
  // A cursor consists of characters that need no encoding.
  let next = `cursor=${cursor}`;
  for (const [name, value] of query) {
    if (name === 'limit' || name === 'view') next += `&${name}=${encodeURIComponent(value)}`;
  }
  const link = `<?${next}>; rel="next"`;
  return link.length > MAX_LINK_LENGTH ? {} : { Link: link };
}

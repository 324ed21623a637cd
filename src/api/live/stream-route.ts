/**
 * Change stream: every change as a server-sent event, resumable at any position.
 *
 * Changes after the position of a stream come from the history, as fast as the client reads them, until the feed has all that
 * follow; then the stream follows the feed. A client that falls behind is served from the history again, so that its buffer
 * stays bounded; one that reads nothing is dropped. Nothing is repeated or missed, because positions have no gaps.
 */
import { Readable } from 'node:stream';
import { ApiError } from '../../domain/errors.ts';
import { InvalidValueError } from '../../domain/filters/parameter-values.ts';
import type { Filters, View } from '../../domain/filters/query.ts';
import { parseFilters, parseParameters, view as parseView } from '../../domain/filters/search-parameters.ts';
import type { Store } from '../../store/store.ts';
import { searchQueryParameters } from '../routes/query-parameters.ts';
import type { Route, RouteContext } from '../server/route.ts';
import type { RouteRequest } from '../server/route-request.ts';
import type { FeedChange } from './change-feed.ts';

/** How long the client waits before it reconnects (`retry:`). */
const RECONNECT_PAUSE_MS = 2_000;
/** How long a client may take to read the last event before the connection is closed. */
const lastEventTimeoutMs = { closing: 2_000, dropped: 30_000 };
const cutReasons = { closing: 'stopping', dropped: 'stalled' } as const;

export const streamRoutes: readonly Route[] = [
  {
    path: '/v2/messages/stream',
    mediaTypes: ['text/event-stream'],
    isStreamed: true,
    operationId: 'streamChanges',
    tag: 'Messages',
    summary: 'Changes as they happen',
    description:
      'Server-sent events: one for every change of a message that matches every given filter, in order. `id` is ' +
      'the position of the change; send the last one back as `Last-Event-ID` (browsers do so by themselves) or ' +
      '`after`, to any server on the same database, and the stream continues after it, without a gap or a ' +
      'repetition. Without either it begins now.\n\n' +
      'The first event is `ready`, with the position at which the stream begins. Then `created`, `updated` and ' +
      '`removed` (a reorganisation took the message back) carry ' +
      '`{"position","change","status","previousStatus","message"}`: filters and `message` take the status, ' +
      '`readyForManualExecution` and the receipt as they were at that change. A change that an execution on the ' +
      'destination brought also carries it as `attempt`, as in `/v2/messages/{messageId}/attempts`. A heartbeat comment every 15 ' +
      'seconds has an `id` that covers changes which the filters left out. `dropped` (the client read too slowly) and ' +
      '`closing` (the server is shutting down) are last events: `{"reason"}`. Reconnect and continue.',
    queryParameters: [
      ...searchQueryParameters.filter(({ name }) => name !== 'cursor' && name !== 'limit'),
      {
        name: 'after',
        description:
          'Position after which the stream begins; 0 replays everything. `Last-Event-ID` takes precedence.',
        schema: { type: 'string', pattern: '^[0-9]+$' },
        example: '0',
      },
    ],
    success: { description: 'Events without end.', headers: ['X-Accel-Buffering'] },
    handle: openStream,
  },
];

const streamHeaders = {
  'Cache-Control': 'no-store',
  // Asks proxies such as nginx not to buffer events.
  'X-Accel-Buffering': 'no',
  // A shutdown need not wait for the client to close the connection.
  Connection: 'close',
};

async function openStream(request: RouteRequest, { store, feed, live }: RouteContext) {
  const { filters, view = 'full', after } = parseFilters(request.query, { view: parseView, after: position });
  const header = request.headers['last-event-id'];
  // EventSource sends no header before the first id, or an empty one.
  const sent = header ? [['Last-Event-ID', String(header)] as const] : [];
  const { 'Last-Event-ID': lastEventId } = parseParameters(sent, { 'Last-Event-ID': position });
  const resumeAt = lastEventId ?? after;
  const releaseSlot = live.streams.acquire(request.client);
  try {
    const latest = await feed.position();
    // The client may have read further in another process than this feed.
    if (resumeAt !== undefined && resumeAt > latest) {
      await rejectFuture(store, resumeAt, lastEventId === undefined ? 'after' : 'Last-Event-ID');
    }
    const signal = request.signal();
    if (request.method === 'HEAD' || signal.aborted) {
      releaseSlot();
      return { body: Readable.from([]), headers: streamHeaders };
    }
    const { client, disconnect } = request;
    const from = resumeAt ?? latest;
    const stream = new ChangeStream({ feed, live, filters, view, from, client, disconnect });
    stream.once('close', releaseSlot);
    const close = () => stream.finish('closing', 'the server is shutting down; reconnect');
    signal.addEventListener('abort', close, { once: true });
    return { body: stream, headers: streamHeaders };
  } catch (error) {
    releaseSlot();
    throw error;
  }
}

function position(text: string): number {
  if (/^[0-9]{1,19}$/.test(text)) return Number(text);
  throw new InvalidValueError('takes a position: the id of an event, or 0 for everything');
}

async function rejectFuture(store: Store, position: number, parameter: string): Promise<void> {
  const latest = Number(await store.latestPosition());
  if (position <= latest) return;
  const problem = `is ${position}, but the latest change has position ${latest}; it may be of another database`;
  throw new ApiError('INVALID_PARAMETERS', `The position to go on from ${problem}.`, [
    { parameter, problem },
  ]);
}

interface StreamOptions
  extends Pick<RouteContext, 'feed' | 'live'>,
    Pick<RouteRequest, 'client' | 'disconnect'> {
  readonly filters: Filters;
  readonly view: View;
  readonly from: number;
}

class ChangeStream extends Readable {
  readonly #options: StreamOptions;
  /** Identifies the filters; empty without filters. */
  readonly #filtersKey: string;
  /** Every change up to here was buffered for the client, or does not match its filters. */
  #position: number;
  /** Events that the client has not read, beyond Node's own small buffer. */
  #buffered: { readonly bytes: Buffer; readonly since: number }[] = [];
  #bufferedBytes = 0;
  #stopFollowing: (() => void) | undefined;
  #isCatchingUp = false;
  #isFinished = false;
  #onDrained: (() => void) | undefined;
  readonly #timers: NodeJS.Timeout[] = [];

  constructor(options: StreamOptions) {
    super({ highWaterMark: 64 * 1024 });
    this.#options = options;
    this.#position = options.from;
    this.#filtersKey = Object.keys(options.filters).length === 0 ? '' : JSON.stringify(options.filters);
    const ready = `event: ready\ndata: {"position":"${options.from}"}\n\n`;
    this.#buffer(Buffer.from(`retry: ${RECONNECT_PAUSE_MS}\nid: ${options.from}\n${ready}`));
    const { heartbeatMs, stalledMs } = options.live.limits;
    this.#timers.push(
      setInterval(() => this.#sendHeartbeat(), heartbeatMs),
      setInterval(() => this.#dropIfStalled(), Math.max(50, stalledMs / 4)),
    );
    this.#catchUp();
  }

  /** Ends the stream with an event that says why. Buffered events are discarded: the client resumes before them. */
  finish(event: 'closing' | 'dropped', reason: string): void {
    // Not cleared when this object is destroyed: its last bytes may wait in a socket that nobody reads.
    setTimeout(this.#options.disconnect, lastEventTimeoutMs[event], cutReasons[event]).unref();
    if (this.#isFinished || this.destroyed) return;
    this.#stop();
    this.#buffered = [];
    this.#bufferedBytes = 0;
    this.push(`event: ${event}\ndata: ${JSON.stringify({ reason })}\n\n`);
    this.push(null);
  }

  override _read(): void {
    for (let next = this.#buffered.shift(); next; next = this.#buffered.shift()) {
      this.#bufferedBytes -= next.bytes.length;
      if (!this.push(next.bytes)) break;
    }
    if (this.#buffered.length === 0) this.#onDrained?.();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#stop();
    done(error);
  }

  #stop(): void {
    this.#isFinished = true;
    this.#stopFollowing?.();
    this.#stopFollowing = undefined;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#onDrained?.();
  }

  /** Reads the history until the stream can follow the feed. */
  #catchUp(): void {
    if (this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    this.#readHistory()
      .catch(() => this.finish('closing', 'the database does not answer at the moment; reconnect'))
      .finally(() => {
        this.#isCatchingUp = false;
        // The changes that the feed passed on at once may have exceeded the buffer.
        if (!this.#isFinished && !this.#stopFollowing) this.#catchUp();
      });
  }

  async #readHistory(): Promise<void> {
    const { feed, live, client } = this.#options;
    while (!this.#isFinished) {
      await this.#untilDrained();
      await feed.position();
      if (this.#isFinished || this.#followFeed()) return;
      // The next changes of the history, when it is the turn of this client.
      await live.catchUp.next({
        client,
        position: this.#position,
        isWanted: () => !this.#isFinished,
        pass: (changes) => {
          for (const change of changes) if (!this.#isFinished) this.#pass(change);
        },
      });
    }
  }

  #followFeed(): boolean {
    const { feed, live } = this.#options;
    let isBufferFull = false;
    const stopFollowing = feed.followFrom(this.#position, (changes) => {
      if (isBufferFull || this.#isFinished) return;
      for (const change of changes) {
        if (this.#bufferedBytes > live.limits.bufferedBytes) {
          isBufferFull = true;
          break;
        }
        this.#pass(change);
      }
      if (!isBufferFull) return;
      this.#stopFollowing?.();
      this.#stopFollowing = undefined;
      this.#catchUp();
    });
    if (isBufferFull) stopFollowing?.();
    else this.#stopFollowing = stopFollowing;
    return stopFollowing !== undefined;
  }

  /** Buffers a change for the client if it matches the filters, and advances the position. */
  #pass(change: FeedChange): void {
    const { filters, view } = this.#options;
    if (this.#filtersKey === '' || change.matches(filters, this.#filtersKey))
      this.#buffer(change.event(view));
    this.#position = change.position;
  }

  #buffer(bytes: Buffer): void {
    this.#buffered.push({ bytes, since: performance.now() });
    this.#bufferedBytes += bytes.length;
    // Unless Node's own buffer is full: then Node calls _read when it has drained.
    if (this.readableLength < this.readableHighWaterMark) this._read();
  }

  async #untilDrained(): Promise<void> {
    if (this.#buffered.length === 0 || this.#isFinished) return;
    await new Promise<void>((resolve) => {
      this.#onDrained = resolve;
    });
    this.#onDrained = undefined;
  }

  /** An id without data advances the client's last event id without an event. */
  #sendHeartbeat(): void {
    if (this.#buffered.length === 0) this.#buffer(Buffer.from(`: heartbeat\nid: ${this.#position}\n\n`));
  }

  #dropIfStalled(): void {
    const { stalledMs } = this.#options.live.limits;
    const oldest = this.#buffered[0];
    if (!oldest || performance.now() - oldest.since < stalledMs) return;
    this.finish('dropped', `the client read nothing for ${stalledMs / 1000} s; reconnect to continue`);
  }
}

/**
 * Every change as it happens, as server-sent events that can be resumed at any position.
 *
 * A stream stands at a position. What lies behind it comes from the history, page by page, as fast as the reader
 * takes it; once the feed remembers everything behind the position, the stream follows the feed. A reader that
 * falls behind goes back to the history, so that it costs no more memory than it is allowed; one that takes
 * nothing is dropped. Nothing is sent twice or left out on the way, for positions have no gaps.
 */
import { Readable } from 'node:stream';
import type { ParameterProblem } from '../domain/errors.ts';
import { ApiError } from '../domain/errors.ts';
import type { Filters, View } from '../domain/query.ts';
import { parseFilters, type RawParameters } from '../domain/search-parameters.ts';
import type { Store } from '../store/store.ts';
import { type ChangeFeed, FeedChange, type Following, type Live } from './change-feed.ts';
import { searchQueryParameters } from './query-parameters.ts';
import type { Route, RouteContext, RouteRequest } from './route.ts';

/** What the client waits before it connects again. */
const RECONNECT_HINT_MS = 2_000;
const CHANGES_PER_READ = 200;
/** How long a reader may take for the last words of its stream before the connection is cut. */
const LAST_WORDS_MS = { closing: 2_000, dropped: 30_000 };

export const streamRoutes: readonly Route[] = [
  {
    path: '/v2/messages/stream',
    aliases: ['/messages/stream'],
    mediaType: 'text/event-stream',
    isStreamed: true,
    operationId: 'streamChanges',
    tag: 'Messages',
    summary: 'Changes as they happen',
    description:
      'Server-sent events: one for every change of a message that matches every given filter, in order. `id` is ' +
      'the position of the change; send the last one back as `Last-Event-ID` (browsers do so by themselves) or ' +
      '`after`, to any server on the same database, and the stream goes on behind it, without a gap or a ' +
      'repetition. Without either it begins now.\n\n' +
      'The first event is `ready`, with the position at which the stream begins. Then `created`, `updated` and ' +
      '`removed` (a reorganisation took the message back) carry ' +
      '`{"position","change","status","previousStatus","message"}`: filters and `message` take the status, ' +
      '`readyForManualExecution` and the receipt as they were at that change. A comment every 15 seconds shows ' +
      'that the stream lives, with an `id` that covers what the filters left out. `dropped` (the reader was too ' +
      'slow) and `closing` (the server stops) are last events: `{"reason"}`. Reconnect and go on.',
    queryParameters: [
      ...searchQueryParameters.filter(({ name }) => name !== 'cursor' && name !== 'limit'),
      {
        name: 'after',
        description:
          'Position behind which the stream begins; 0 replays everything. `Last-Event-ID` takes precedence.',
        schema: { type: 'string', pattern: '^[0-9]+$' },
        example: '0',
      },
    ],
    success: { description: 'Events without end.', headers: ['X-Accel-Buffering'] },
    errors: [400, 429],
    handle: openStream,
  },
];

const streamHeaders = {
  'Cache-Control': 'no-store',
  // Asks nginx and its kin to pass on every event at once.
  'X-Accel-Buffering': 'no',
  // A stream ends with its connection: a server that stops need not wait for the client to let go.
  Connection: 'close',
};

async function openStream(request: RouteRequest, { store, feed, live }: RouteContext) {
  const { filters, view, after } = parseStreamParameters(request.query);
  const remembered = parsePosition(request.headers['last-event-id'], 'Last-Event-ID');
  const resumeAt = remembered ?? after;
  const leave = live.streams.take(request.client);
  try {
    const latest = await feed.position();
    // The feed may be behind what the client has read elsewhere.
    if (resumeAt !== undefined && resumeAt > latest) {
      await refuseFuture(store, resumeAt, remembered === undefined ? 'after' : 'Last-Event-ID');
    }
    const { signal } = request;
    if (request.method === 'HEAD' || signal.aborted) {
      leave();
      return { body: Readable.from([]), headers: streamHeaders };
    }
    const stream = new ChangeStream({
      store,
      feed,
      live,
      filters,
      view,
      from: resumeAt ?? latest,
      hangUp: request.hangUp,
    });
    stream.once('close', leave);
    signal.addEventListener('abort', () => stream.finish('closing', 'the server stops; connect again'), {
      once: true,
    });
    return { body: stream, headers: streamHeaders };
  } catch (error) {
    leave();
    throw error;
  }
}

interface StreamParameters {
  readonly filters: Filters;
  readonly view: View;
  readonly after: number | undefined;
}

function parseStreamParameters(query: RawParameters): StreamParameters {
  const { filters, values } = parseFilters(query, ['view', 'after'], (given) => {
    const problems: ParameterProblem[] = [];
    const view = given.get('view') ?? 'full';
    if (view !== 'full' && view !== 'summary')
      problems.push({ parameter: 'view', problem: 'takes full or summary' });
    const after = given.get('after');
    if (after !== undefined && !POSITION.test(after))
      problems.push({ parameter: 'after', problem: POSITION_PROBLEM });
    return problems;
  });
  const view = values.get('view') === 'summary' ? 'summary' : 'full';
  return { filters, view, after: parsePosition(values.get('after'), 'after') };
}

const POSITION = /^[0-9]{1,19}$/;
const POSITION_PROBLEM = 'takes a position: the id of an event, or 0 for everything';

function parsePosition(text: string | string[] | undefined, parameter: string): number | undefined {
  // EventSource sends no header before the first id; an empty one means the same.
  if (text === undefined || text === '') return undefined;
  if (typeof text === 'string' && POSITION.test(text)) return Number(text);
  throw new ApiError('INVALID_PARAMETERS', `${parameter} ${POSITION_PROBLEM}`, [
    { parameter, problem: POSITION_PROBLEM },
  ]);
}

async function refuseFuture(store: Store, position: number, parameter: string): Promise<void> {
  const latest = Number(await store.latestPosition());
  if (position <= latest) return;
  const problem = `is ${position}, but the latest change has position ${latest}; it may be of another database`;
  throw new ApiError('INVALID_PARAMETERS', `The position to go on from ${problem}.`, [
    { parameter, problem },
  ]);
}

interface StreamOptions {
  readonly store: Store;
  readonly feed: ChangeFeed;
  readonly live: Live;
  readonly filters: Filters;
  readonly view: View;
  readonly from: number;
  readonly hangUp: () => void;
}

class ChangeStream extends Readable {
  readonly #options: StreamOptions;
  /** Stands for the filters; empty where there are none. */
  readonly #filtersKey: string;
  /** Everything up to here was offered to the reader, or is none of its business. */
  #position: number;
  /** What the reader was offered and has not taken, beyond Node's own small buffer. */
  #offered: { readonly bytes: Buffer; readonly since: number }[] = [];
  #offeredBytes = 0;
  #following: Following | undefined;
  #isCatchingUp = false;
  #isFinished = false;
  #onTaken: (() => void) | undefined;
  readonly #timers: NodeJS.Timeout[] = [];

  constructor(options: StreamOptions) {
    super({ highWaterMark: 64 * 1024 });
    this.#options = options;
    this.#position = options.from;
    this.#filtersKey = Object.keys(options.filters).length === 0 ? '' : JSON.stringify(options.filters);
    this.#offer(
      Buffer.from(
        `retry: ${RECONNECT_HINT_MS}\nid: ${options.from}\nevent: ready\n` +
          `data: {"position":"${options.from}"}\n\n`,
      ),
    );
    const { heartbeatMs, stalledMs } = options.live.limits;
    this.#timers.push(
      setInterval(() => this.#beat(), heartbeatMs),
      setInterval(() => this.#dropIfStalled(), Math.max(50, stalledMs / 4)),
    );
    this.#catchUp();
  }

  /** Ends the stream with an event that says why; what was offered before and not taken is left for later. */
  finish(event: 'closing' | 'dropped', reason: string): void {
    // Beyond the life of this object: its last bytes may be in the hands of a socket that nobody reads.
    setTimeout(this.#options.hangUp, LAST_WORDS_MS[event]).unref();
    if (this.#isFinished || this.destroyed) return;
    this.#leave();
    this.#offered = [];
    this.#offeredBytes = 0;
    this.push(`event: ${event}\ndata: ${JSON.stringify({ reason })}\n\n`);
    this.push(null);
  }

  override _read(): void {
    while (this.#offered.length > 0) {
      const next = this.#offered.shift();
      if (!next) break;
      this.#offeredBytes -= next.bytes.length;
      if (!this.push(next.bytes)) break;
    }
    if (this.#offered.length === 0) this.#onTaken?.();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#leave();
    done(error);
  }

  #leave(): void {
    this.#isFinished = true;
    this.#following?.stop();
    this.#following = undefined;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#onTaken?.();
  }

  /** From the history until the feed takes over. */
  #catchUp(): void {
    if (this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    this.#readHistory()
      .catch(() => this.finish('closing', 'the database does not answer at the moment; connect again'))
      .finally(() => {
        this.#isCatchingUp = false;
        // What the feed handed over may have been too much already.
        if (!this.#isFinished && !this.#following) this.#catchUp();
      });
  }

  async #readHistory(): Promise<void> {
    const { feed } = this.#options;
    while (!this.#isFinished) {
      await this.#untilTaken();
      await feed.position();
      if (this.#isFinished) return;
      if (this.#followFeed()) return;
      await this.#passNext();
    }
  }

  /**
   * Passes on the next changes of the history. A read takes no more bytes than the buffer of a stream may have, so that
   * a slow reader keeps no other records in memory. All of them are dropped when this returns.
   */
  async #passNext(): Promise<void> {
    const { store, live } = this.#options;
    const { bufferedBytes } = live.limits;
    const changes = await live.takeTurn(async () => {
      if (this.#isFinished) return [];
      return (await store.changesAfter(String(this.#position), CHANGES_PER_READ, bufferedBytes)).changes;
    });
    for (const change of changes) {
      if (this.#isFinished) return;
      this.#pass(new FeedChange(change));
    }
  }

  #followFeed(): boolean {
    const { feed, live } = this.#options;
    let isTooMuch = false;
    const following = feed.followFrom(this.#position, (changes) => {
      if (isTooMuch || this.#isFinished) return;
      for (const change of changes) {
        if (this.#offeredBytes > live.limits.bufferedBytes) {
          isTooMuch = true;
          break;
        }
        this.#pass(change);
      }
      if (!isTooMuch) return;
      this.#following?.stop();
      this.#following = undefined;
      this.#catchUp();
    });
    if (isTooMuch) following?.stop();
    else this.#following = following;
    return following !== undefined;
  }

  /** Offers a change to the reader, if it wants it, and moves on to its position. */
  #pass(change: FeedChange): void {
    const { filters, view } = this.#options;
    if (this.#filtersKey === '' || change.matches(filters, this.#filtersKey)) this.#offer(change.event(view));
    this.#position = change.position;
  }

  #offer(bytes: Buffer): void {
    this.#offered.push({ bytes, since: performance.now() });
    this.#offeredBytes += bytes.length;
    // Asks for _read, unless Node's own buffer is full and will ask by itself.
    if (this.readableLength < this.readableHighWaterMark) this._read();
  }

  async #untilTaken(): Promise<void> {
    if (this.#offered.length === 0 || this.#isFinished) return;
    await new Promise<void>((resolve) => {
      this.#onTaken = resolve;
    });
    this.#onTaken = undefined;
  }

  /** A block without data moves a client's last event id on and is no event. */
  #beat(): void {
    if (this.#offered.length === 0) this.#offer(Buffer.from(`: heartbeat\nid: ${this.#position}\n\n`));
  }

  #dropIfStalled(): void {
    const { stalledMs } = this.#options.live.limits;
    const oldest = this.#offered[0];
    if (!oldest || performance.now() - oldest.since < stalledMs) return;
    this.finish(
      'dropped',
      `the reader did not take what it was sent within ${stalledMs / 1000} s; connect again to go on`,
    );
  }
}

/**
 * An HTTP client for measuring: as many connections as asked for, each with one request at a time, by hand on sockets,
 * because a client that does more would take from the server the processor that they share.
 *
 * Nothing goes unlooked at: every answer must have the status 200 and its whole length; the rows of a page are counted
 * and must descend; where the answer is known, every byte must be as known. Pages are looked at when the time is over,
 * for the same reason.
 */
import net from 'node:net';

export interface PlainRequest {
  readonly path: string;
  /** Sent with POST, as JSON. */
  readonly body?: string;
  /** How many rows the answer must have; undefined: any number up to the limit. */
  readonly rows?: number;
}

export interface LoadOrder {
  readonly port: number;
  readonly requests: readonly PlainRequest[];
  /** Index of the first request; the list is repeated from its end. */
  readonly from: number;
  readonly connections: number;
  /** Ends after so long, or after so many requests. */
  readonly seconds?: number;
  readonly count?: number;
  /** `page`: count rows and check their order. `same`: every answer has the bytes of the first. */
  readonly check: 'page' | 'same' | 'status';
  /** Vary every URL without changing its meaning, so that the response cache does not help. */
  readonly isRespelled?: boolean;
  /** Keep the first response and every n-th after it, to check them afterwards; default: none. */
  readonly keepEvery?: number;
}

export interface LoadReport {
  /** How many were answered. */
  readonly requests: number;
  /** How often the server shed load (503). The connection then waits for `Retry-After`, and asks again. */
  readonly shed: number;
  readonly seconds: number;
  readonly bytes: number;
  /** Milliseconds. */
  readonly latency: {
    readonly p50: number;
    readonly p90: number;
    readonly p99: number;
    readonly max: number;
  };
  readonly kept: readonly { readonly index: number; readonly body: string }[];
}

/** Pages that wait to be looked at; when it is full, time is taken for them. */
const SHELF_BYTES = 512 * 1024 * 1024;
let shelf: Buffer | undefined;

const ROW_MARK = Buffer.from('{"messageId":"0x');
const TIME_MARK = Buffer.from('"sendTimestamp":"');
const HEADER_END = Buffer.from('\r\n\r\n');

export async function runLoad(order: LoadOrder): Promise<LoadReport> {
  const latencies: number[] = [];
  const kept: { index: number; body: string }[] = [];
  let bytes = 0;
  let sent = 0;
  let shed = 0;
  let first: Buffer | undefined;
  const began = performance.now();
  const deadline = order.seconds === undefined ? Number.POSITIVE_INFINITY : began + order.seconds * 1000;
  const most = order.count ?? Number.POSITIVE_INFINITY;

  /** The next request's index, or undefined when it is enough. */
  const next = (): number | undefined => {
    // On a busy machine the time may be over before the first connection is made.
    if (sent >= most || (sent > 0 && performance.now() >= deadline)) return undefined;
    return (order.from + sent++) % order.requests.length;
  };
  const shelved: { request: PlainRequest; page: Buffer }[] = [];
  let shelvedBytes = 0;
  const checkShelved = () => {
    for (const { request, page } of shelved.splice(0)) checkPage(page, request);
    shelvedBytes = 0;
  };
  const putAside = (request: PlainRequest, page: Buffer) => {
    shelf ??= Buffer.allocUnsafe(SHELF_BYTES);
    if (shelvedBytes + page.length > shelf.length) checkShelved();
    const end = shelvedBytes + page.copy(shelf, shelvedBytes);
    shelved.push({ request, page: shelf.subarray(shelvedBytes, end) });
    shelvedBytes = end;
  };
  const receive = (index: number, body: Buffer) => {
    const request = order.requests[index] as PlainRequest;
    bytes += body.length;
    if (order.check === 'page') putAside(request, body);
    if (order.check === 'same') {
      first ??= Buffer.from(body);
      if (!body.equals(first)) throw new Error(`${request.path}: an answer differs from the one before`);
    }
    if (order.keepEvery !== undefined && (latencies.length - 1) % order.keepEvery === 0)
      kept.push({ index, body: body.toString() });
  };

  /** How long to stay away; not beyond the end, though. */
  const backOff = (retryAfterMs: number): number => {
    shed++;
    return Math.max(0, Math.min(retryAfterMs, deadline - performance.now()));
  };

  await Promise.all(
    Array.from({ length: order.connections }, () => work(order, { next, receive, backOff }, latencies)),
  );
  const seconds = (performance.now() - began) / 1000;
  checkShelved();
  latencies.sort((a, b) => a - b);
  const at = (share: number) =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
  return {
    requests: latencies.length,
    shed,
    seconds,
    bytes,
    latency: { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: latencies.at(-1) ?? 0 },
    kept,
  };
}

let respellings = 0;
/** As many letters of a query as can be percent-encoded or not. */
const SPELLED_LETTERS = 12;

/** The n-th of many spellings of a URL: some of its letters percent-encoded, and more ampersands than needed. */
function respelled(path: string, n: number): string {
  const start = path.indexOf('?') + 1;
  if (start === 0) return path;
  let query = '';
  let letters = 0;
  let i = start;
  for (; i < path.length && letters < SPELLED_LETTERS; i++) {
    const canBeEncoded = /[a-z0-9]/i.test(path[i] ?? '') && path[i - 1] !== '%' && path[i - 2] !== '%';
    const isEncoded = canBeEncoded && (n >> letters++) % 2 === 1;
    query += isEncoded ? `%${path.charCodeAt(i).toString(16)}` : path[i];
  }
  query += path.slice(i);
  return `${path.slice(0, start)}${'&'.repeat((n >> letters) % 200)}${query}`;
}

interface Turns {
  readonly next: () => number | undefined;
  readonly receive: (index: number, body: Buffer) => void;
  readonly backOff: (retryAfterMs: number) => number;
}

/** One connection until `next` has nothing more. */
function work(
  { port, requests, isRespelled }: LoadOrder,
  { next, receive, backOff }: Turns,
  latencies: number[],
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
    let buffer = Buffer.allocUnsafe(128 * 1024);
    let filled = 0;
    let bodyStart = 0;
    let bodyEnd = 0;
    let index: number | undefined;
    let sentAt = 0;
    /** Of an answer that sheds load. */
    let retryAfterMs: number | undefined;

    const ask = (again?: number) => {
      index = again ?? next();
      if (index === undefined) {
        socket.end();
        resolve();
        return;
      }
      const { path: plain, body } = requests[index] as PlainRequest;
      const path = isRespelled ? respelled(plain, ++respellings) : plain;
      filled = 0;
      bodyEnd = 0;
      sentAt = performance.now();
      socket.write(
        body === undefined
          ? `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`
          : `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
    };
    const readHeaders = () => {
      const end = buffer.subarray(0, filled).indexOf(HEADER_END);
      if (end === -1) return;
      const headers = buffer.toString('latin1', 0, end);
      const length = /\r\ncontent-length: *(\d+)/i.exec(headers)?.[1];
      const where = `${index === undefined ? '' : requests[index]?.path}`;
      const retryAfter = /\r\nretry-after: *(\d+)/i.exec(headers)?.[1];
      const isShed = headers.slice(9, 12) === '503' && retryAfter !== undefined;
      retryAfterMs = isShed ? Number(retryAfter) * 1_000 : undefined;
      if (headers.slice(9, 12) !== '200' && !isShed)
        throw new Error(
          `${where} answered ${headers.split('\r\n')[0]}: ${buffer.toString('utf8', end, filled)}`,
        );
      if (length === undefined) throw new Error(`${where} answered without Content-Length`);
      bodyStart = end + HEADER_END.length;
      bodyEnd = bodyStart + Number(length);
    };
    const take = (chunk: Buffer) => {
      if (index === undefined) throw new Error('A response without a request');
      if (filled + chunk.length > buffer.length) {
        const larger = Buffer.allocUnsafe(Math.max(2 * buffer.length, filled + chunk.length));
        buffer.copy(larger, 0, 0, filled);
        buffer = larger;
      }
      filled += chunk.copy(buffer, filled);
      if (bodyEnd === 0) readHeaders();
      if (bodyEnd === 0 || filled < bodyEnd) return;
      if (filled > bodyEnd) throw new Error('An answer is longer than it says');
      if (retryAfterMs !== undefined) {
        setTimeout(ask, backOff(retryAfterMs), index);
        return;
      }
      latencies.push(performance.now() - sentAt);
      receive(index, buffer.subarray(bodyStart, bodyEnd));
      ask();
    };
    socket.on('connect', () => ask());
    socket.on('data', (chunk) => {
      try {
        take(chunk);
      } catch (error) {
        socket.destroy();
        reject(error);
      }
    });
    socket.on('error', reject);
    socket.on('close', () => {
      if (index !== undefined) reject(new Error('The server hung up before it had answered'));
    });
  });
}

/** Rows are found by how each begins; nothing else in an answer begins so. */
function checkPage(body: Buffer, { path, rows }: PlainRequest): void {
  let count = 0;
  let previous: string | undefined;
  for (let at = body.indexOf(ROW_MARK); at !== -1; at = body.indexOf(ROW_MARK, at + 80)) {
    count++;
    const time = body.indexOf(TIME_MARK, at) + TIME_MARK.length;
    // Time and id, as the order of a result compares them.
    const key = body.toString('latin1', time, time + 24) + body.toString('latin1', at + 16, at + 80);
    if (previous !== undefined && key >= previous) throw new Error(`${path}: row ${count} is out of order`);
    previous = key;
  }
  if (rows !== undefined && count !== rows) throw new Error(`${path}: ${count} rows instead of ${rows}`);
}

/**
 * HTTP as bytes: sends whatever it is given, also what no client library would send, and reads one answer.
 *
 * A line keeps its connection for the next request, as browsers do; a broken request gets a connection of its own, for
 * what it leaves behind belongs to nobody.
 */
import { connect, type Socket } from 'node:net';
import { brotliDecompressSync, constants, gunzipSync } from 'node:zlib';

export interface WireAnswer {
  readonly status: number;
  /** Names in lower case; of a repeated one the last. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export type Outcome = WireAnswer | 'closed without an answer' | 'no answer in time';

export interface SendOptions {
  /** Ends our side behind the last byte: for requests that are not whole, which the server would wait for. */
  readonly hangUp?: boolean;
  readonly isHead?: boolean;
}

export type Line = ReturnType<typeof openLine>;

/** Far beyond what any answer takes, also on a busy machine, and beyond the server's own patience. */
const HUNG_AFTER_MS = 60_000;

export function openLine(port: number) {
  let kept: Socket | undefined;
  return {
    async send(bytes: Buffer, options: SendOptions = {}): Promise<Outcome> {
      const socket = kept ?? openSocket(port);
      kept = undefined;
      const outcome = await exchange(socket, bytes, options);
      const mayGoOn =
        typeof outcome === 'object' &&
        !options.hangUp &&
        outcome.headers.connection !== 'close' &&
        !isEndless(outcome.headers);
      if (mayGoOn && !socket.destroyed && !socket.readableEnded) kept = socket;
      else socket.destroy();
      return outcome;
    },
    close: () => kept?.destroy(),
  };
}

function openSocket(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  // What breaks between two requests shows at the next one.
  return socket.on('error', () => undefined);
}

function exchange(
  socket: Socket,
  bytes: Buffer,
  { hangUp = false, isHead = false }: SendOptions,
): Promise<Outcome> {
  return new Promise((resolve) => {
    let received = Buffer.alloc(0);
    const end = (outcome: Outcome) => {
      clearTimeout(timer);
      socket.off('data', onData).off('end', onEnd).off('close', onEnd).off('error', onEnd);
      resolve(outcome);
    };
    const onData = (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      const answer = readAnswer(received, isHead, false);
      if (answer) end(answer);
    };
    const onEnd = () => end(readAnswer(received, isHead, true) ?? 'closed without an answer');
    const timer = setTimeout(() => end('no answer in time'), HUNG_AFTER_MS);
    socket.on('data', onData).on('end', onEnd).on('close', onEnd).on('error', onEnd);
    if (hangUp) socket.end(bytes);
    else socket.write(bytes);
  });
}

/** Undefined until the answer is whole. */
function readAnswer(received: Buffer, isHead: boolean, isEnded: boolean): WireAnswer | undefined {
  const headEnd = received.indexOf('\r\n\r\n');
  if (headEnd === -1) return undefined;
  const [statusLine = '', ...lines] = received.subarray(0, headEnd).toString('latin1').split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]);
  const rest = received.subarray(headEnd + 4);
  if (status === 100) return readAnswer(rest, isHead, isEnded);
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const bodiless = isHead || status === 204 || status === 304 || isEndless(headers);
  const body = bodiless ? Buffer.alloc(0) : readBody(rest, headers, isEnded);
  return body && { status, headers, body: decoded(body, headers['content-encoding']) };
}

const isEndless = (headers: Readonly<Record<string, string>>) =>
  headers['content-type']?.startsWith('text/event-stream') === true;

function readBody(rest: Buffer, headers: Readonly<Record<string, string>>, isEnded: boolean) {
  if (headers['transfer-encoding'] === 'chunked') return readChunks(rest);
  const length = headers['content-length'];
  if (length === undefined) return isEnded ? rest : undefined;
  return rest.length >= Number(length) ? rest.subarray(0, Number(length)) : undefined;
}

function readChunks(rest: Buffer): Buffer | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = rest.indexOf('\r\n', at);
    if (lineEnd === -1) return undefined;
    const size = Number.parseInt(rest.subarray(at, lineEnd).toString('latin1'), 16);
    const start = lineEnd + 2;
    if (rest.length < start + size + 2) return undefined;
    if (size === 0) return Buffer.concat(parts);
    parts.push(rest.subarray(start, start + size));
    at = start + size + 2;
  }
}

function decoded(body: Buffer, coding: string | undefined): Buffer {
  if (body.length === 0) return body;
  if (coding === 'br') return brotliDecompressSync(body);
  return coding === 'gzip' ? gunzipSync(body, { finishFlush: constants.Z_SYNC_FLUSH }) : body;
}

/** A server on its own port over its own store, for tests that send requests as clients do. */
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { createServer, type ServerOptions } from '../../src/api/server/server.ts';
import type { ErrorCode } from '../../src/domain/errors.ts';
import type { Message } from '../../src/domain/message.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { createTestDatabase, openTestStore } from '../database.ts';
import { makeSnapshot } from '../fixtures.ts';

export const TEST_VERSION = '9.9.9-test';

export type RunningServer = Awaited<ReturnType<typeof serveStore>>;

export interface AskOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
  /** The body as JSON; throws where it is none. */
  readonly json: <T = ErrorBody>() => T;
}

export interface ErrorBody {
  readonly error: ErrorCode;
  readonly message: string;
  readonly requestId: string;
  readonly details: readonly { readonly parameter: string; readonly problem: string }[];
}

export interface SearchBody {
  readonly data: readonly Message[];
  readonly pagination: {
    readonly limit: number;
    readonly hasNextPage: boolean;
    readonly cursor: string | null;
  };
}

export async function startServer(
  messages: readonly Message[] = [],
  options: Partial<ServerOptions> = {},
): Promise<RunningServer> {
  const store = await openTestStore();
  await store.apply(messages.map(makeSnapshot));
  return serveStore(store, options);
}

/** The same over a store that was made for simulated data: the template of the others is a real one. */
export async function startSimulatedServer(
  messages: readonly Message[],
  options: Partial<ServerOptions> = {},
): Promise<RunningServer> {
  const database = await createTestDatabase({ empty: true });
  const store = await openStore({ place: { url: database.url }, content: 'simulated' });
  await store.apply(messages.map(makeSnapshot));
  const close = async () => {
    await store.close();
    await database.drop();
  };
  return serveStore({ ...store, url: database.url, close }, options);
}

export async function serveStore(
  store: Store & { readonly url: string },
  options: Partial<ServerOptions> = {},
) {
  const log: string[] = [];
  const app = createServer({
    store,
    version: TEST_VERSION,
    log: pino({ level: 'info' }, { write: (line) => log.push(line) }),
    ...options,
  });
  await app.listen({ port: 0, host: '127.0.0.1', listenTextResolver: () => '' });
  const port = (app.server.address() as AddressInfo).port;
  let closing: Promise<void> | undefined;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    store,
    /** Every line that the server has logged. */
    log: log as readonly string[],
    /** Sends one request as it stands (no normalisation of the path) and reads the whole answer. */
    ask: (path: string, given?: AskOptions) => ask(port, path, given),
    close: () => {
      closing ??= app.close().then(() => store.close());
      return closing;
    },
  };
}

/** Like `startServer`, for all tests of a file or a group. */
export function serverForAll(...given: Parameters<typeof startServer>): RunningServer {
  let server: RunningServer | undefined;
  beforeAll(async () => {
    server = await startServer(...given);
  });
  afterAll(() => server?.close());
  return new Proxy({} as RunningServer, {
    get: (_, name) => server?.[name as keyof RunningServer],
  });
}

/** Like `startServer`, for one test: closed when it ends. */
export async function startServerForTest(
  ...given: Parameters<typeof startServer>
): ReturnType<typeof startServer> {
  const server = await startServer(...given);
  onTestFinished(() => server.close());
  return server;
}

/** The ids of a walk through the pages of a search, to its end or through so many pages, with the cursor behind them. */
export async function walkPages(
  server: Pick<RunningServer, 'ask'>,
  query: string,
  { pages = Number.POSITIVE_INFINITY, check = async (_answer: Answer) => {} } = {},
) {
  const messages: Message[] = [];
  const kept = new URLSearchParams(query);
  for (let page = 1, next = query; ; page++) {
    const answer = await server.ask(`/v2/messages?${next}`);
    expect(answer.status, answer.text.slice(0, 200)).toBe(200);
    await check(answer);
    const { data, pagination } = answer.json<SearchBody>();
    messages.push(...data);
    const { cursor } = pagination;
    expect(pagination.hasNextPage).toBe(cursor !== null);
    if (cursor === null || page === pages)
      return { messages, ids: messages.map(({ messageId }) => messageId), pages: page, cursor };
    next = `limit=${kept.get('limit') ?? pagination.limit}&cursor=${cursor}`;
  }
}

function ask(
  port: number,
  path: string,
  { method = 'GET', headers = {}, body }: AskOptions = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { host: '127.0.0.1', port, path, method, headers, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => resolve(answer(response.statusCode ?? 0, response.headers, chunks)));
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

function answer(status: number, headers: IncomingHttpHeaders, chunks: readonly Buffer[]): Answer {
  const bytes = Buffer.concat(chunks);
  const text = bytes.toString('utf8');
  return { status, headers, bytes, text, json: () => JSON.parse(text) };
}

/** Writes bytes that need not be HTTP, and reads until the server closes the connection. */
export function sendBytes(port: number, bytes: string | Buffer): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('end', () => {
      socket.end();
      const text = Buffer.concat(chunks).toString('utf8');
      const [head = '', ...rest] = text.split('\r\n\r\n');
      const [statusLine = '', ...lines] = head.split('\r\n');
      const headers = Object.fromEntries(
        lines.map((line) => [
          line.slice(0, line.indexOf(':')).toLowerCase(),
          line.slice(line.indexOf(':') + 2),
        ]),
      );
      resolve(answer(Number(statusLine.split(' ')[1]), headers, [Buffer.from(rest.join('\r\n\r\n'))]));
    });
  });
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const seenRequestIds = new Set<string>();

/** A request id that is a UUID and was never given before. */
export function expectFreshRequestId(headers: IncomingHttpHeaders): string {
  const id = String(headers['x-request-id']);
  expect(id).toMatch(uuid);
  expect(seenRequestIds.has(id), 'the request id is fresh').toBe(false);
  seenRequestIds.add(id);
  return id;
}

/** The value of a sample, by its name and labels as they stand in the metrics; undefined if no sample has that name. */
export async function metricOf(
  server: Pick<RunningServer, 'ask'>,
  sample: string,
): Promise<string | undefined> {
  const { text } = await server.ask('/metrics');
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${sample} `));
  return line?.slice(sample.length + 1);
}

/** The answer is an error of the catalogue in its one shape, and shows nothing of the inside. */
export function expectError(given: Answer, status: number, code: ErrorCode): ErrorBody {
  expect({ status: given.status, text: given.text }).toMatchObject({ status });
  expect(given.headers['content-type']).toBe('application/json; charset=utf-8');
  const body = given.json();
  expect(Object.keys(body)).toEqual(['error', 'message', 'requestId', 'details']);
  expect(body).toMatchObject({ error: code, message: expect.any(String), details: expect.any(Array) });
  expect(body.message.length).toBeGreaterThan(10);
  for (const detail of body.details) {
    expect(detail).toEqual({ parameter: expect.any(String), problem: expect.stringMatching(/\w/) });
  }
  expect(body.requestId).toBe(expectFreshRequestId(given.headers));
  expectNoInside(given);
  return body;
}

/** No stack, no SQL, no path of a source file, no name of a library. */
export function expectNoInside({ text }: Answer): void {
  expect(text).not.toMatch(
    /\n\s+at |node_modules|\.ts:\d|\bselect\b|relation "|syntax error|fastify|FST_|pg_/i,
  );
}

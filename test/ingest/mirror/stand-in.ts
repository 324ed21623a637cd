/**
 * A server that speaks the API as the hosted service does, and has its moods: lists of summaries, 429 with
 * Retry-After, 500s, slow answers, bodies that break off, cursors that expire.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { compareNewestFirst } from '../../../src/domain/filters/matches.ts';
import type { Message } from '../../../src/domain/message.ts';
import { etagOf, hostedErrors, listBody, parseHostedPath, summaryOf } from './hosted-api.ts';

export interface SeenRequest {
  readonly at: number;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  status: number;
}

/** What happens to a request instead of its answer. */
export type Mood =
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  | 'truncated'
  | 'silent';

export interface StandIn {
  readonly url: string;
  /** By message id; tests change it as they like. Values need not be valid. */
  readonly records: Map<string, Message>;
  readonly requests: SeenRequest[];
  /** Decides about each request before it is answered. */
  mood: (request: SeenRequest) => Mood | undefined;
  /** Cursors issued so far are not taken any more. */
  expireCursors(): void;
  /** Records in the list instead of summaries. */
  isWhole: boolean;
  maxLimit: number;
  /** Whether sentBefore is a parameter that it knows. */
  knowsTimes: boolean;
  add(...messages: readonly Message[]): void;
  /** By message id; a message without any is answered with 409. */
  readonly executionInputs: Map<string, unknown>;
}

export async function startStandIn(...messages: readonly Message[]): Promise<StandIn> {
  let era = 0;
  const server = createServer((request, response) => answer(request, response));
  const standIn: StandIn = {
    url: '',
    records: new Map(),
    requests: [],
    mood: () => undefined,
    expireCursors: () => {
      era++;
    },
    isWhole: false,
    maxLimit: 100,
    knowsTimes: false,
    executionInputs: new Map(),
    add: (...more) => {
      for (const message of more) standIn.records.set(message.messageId, message);
    },
  };
  standIn.add(...messages);

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://stand.in');
    const seen: SeenRequest = {
      at: performance.now(),
      path: pathname,
      query: searchParams,
      headers: request.headers,
      status: 0,
    };
    standIn.requests.push(seen);
    const mood = standIn.mood(seen);
    if (mood === 'silent') return;
    if (mood === 'truncated') {
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '1000' });
      response.write('{"data":[{"messageId":"0x');
      setTimeout(() => response.destroy(), 20);
      return;
    }
    const send = (status: number, body: unknown, headers: Record<string, string> = {}) => {
      seen.status = status;
      response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    };
    if (mood) {
      send(mood.status, mood.body ?? { error: 'MOOD', message: 'Not now.' }, mood.headers);
      return;
    }
    const target = parseHostedPath(pathname);
    if (!target) send(404, hostedErrors.noSuchPath);
    else if (target.kind === 'list') list(searchParams, send);
    else if (target.kind === 'execution-inputs') {
      const inputs = standIn.executionInputs.get(target.messageId);
      if (inputs) send(200, inputs);
      else send(409, hostedErrors.notCommitted);
    } else {
      const record = standIn.records.get(target.messageId);
      if (!record) {
        send(404, hostedErrors.noSuchMessage);
        return;
      }
      const text = JSON.stringify(record);
      const etag = etagOf(text);
      if (request.headers['if-none-match'] === etag) {
        seen.status = 304;
        response.writeHead(304, { ETag: etag }).end();
        return;
      }
      send(200, text, { ETag: etag });
    }
  }

  function list(query: URLSearchParams, send: (status: number, body: unknown) => void): void {
    const limit = Number(query.get('limit') ?? 20);
    if (limit > standIn.maxLimit) {
      send(400, hostedErrors.limitTooHigh(standIn.maxLimit));
      return;
    }
    if (query.has('sentBefore') && !standIn.knowsTimes) {
      send(400, hostedErrors.unknownParameter('sentBefore'));
      return;
    }
    const cursor = query.get('cursor');
    const [cursorEra, time, id] =
      cursor === null ? [] : Buffer.from(cursor, 'base64url').toString().split('|');
    if (cursor !== null && cursorEra !== String(era)) {
      send(400, hostedErrors.expiredCursor);
      return;
    }
    const before = query.has('sentBefore')
      ? Date.parse(query.get('sentBefore') ?? '')
      : Number.POSITIVE_INFINITY;
    const all = [...standIn.records.values()]
      .filter((message) => Date.parse(message.sendTimestamp) < before)
      .sort(compareNewestFirst)
      .filter(
        (message) =>
          cursor === null ||
          message.sendTimestamp < (time ?? '') ||
          (message.sendTimestamp === time && message.messageId < (id ?? '')),
      );
    const page = all.slice(0, limit);
    const last = page.at(-1);
    const next =
      all.length > page.length && last !== undefined
        ? Buffer.from(`${era}|${last.sendTimestamp}|${last.messageId}`).toString('base64url')
        : undefined;
    send(200, listBody(standIn.isWhole ? page : page.map(summaryOf), limit, next));
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return Object.assign(standIn, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

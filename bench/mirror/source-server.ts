/**
 * The mirrored server, a process of its own: the hosted service's API with a latency and a rate limit.
 *
 * It counts what it answers by status, and notes the first and the last request since it was last asked.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import {
  etagOf,
  hostedErrors,
  listBody,
  parseHostedPath,
  summaryOf,
} from '../../test/ingest/mirror/hosted-api.ts';
import { answerOrders } from '../child.ts';
import { numberOf, recordOf } from './records.ts';

export type SourceOrder =
  | { readonly kind: 'start'; readonly settings: SourceSettings }
  /** Starts counting anew. */
  | { readonly kind: 'reset' }
  | { readonly kind: 'read' };

export interface SourceSettings {
  /** 0 for a free one. */
  readonly port: number;
  readonly records: number;
  readonly requestsPerSecond: number;
  /** Records in the list instead of summaries, as a Lanescan has them. */
  readonly isWhole: boolean;
}

export interface SourceCounts {
  readonly port: number;
  readonly lists: number;
  readonly details: number;
  /** Records in answers. */
  readonly records: number;
  /** Requests that a 429 answered. */
  readonly refused: number;
  readonly seconds: number;
}

const LATENCY_MS = 100;
const HOSTED_MAX_LIMIT = 100;
const LANESCAN_MAX_LIMIT = 500;
const RETRY_AFTER_SECONDS = 1;
/** So many seconds of the rate may come at once. */
const BURST_SECONDS = 0.5;

const noCounts = { lists: 0, details: 0, records: 0, refused: 0 };
let counts = { ...noCounts };
let firstAt: number | undefined;
let lastAt = 0;
let port = 0;

answerOrders<SourceOrder, SourceCounts>(async (order) => {
  if (order.kind === 'start') port = await start(order.settings);
  if (order.kind === 'reset') {
    counts = { ...noCounts };
    firstAt = undefined;
  }
  return { ...counts, port, seconds: firstAt === undefined ? 0 : (lastAt - firstAt) / 1000 };
});

async function start(settings: SourceSettings): Promise<number> {
  const isAllowed = createTokenBucket(settings.requestsPerSecond);
  const server = createServer((request, response) => {
    lastAt = performance.now();
    firstAt ??= lastAt;
    const isRefused = !isAllowed(lastAt);
    void delay(LATENCY_MS).then(() => answer(request, response, isRefused, settings));
  });
  await new Promise<void>((resolve) => server.listen(settings.port, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

function createTokenBucket(perSecond: number): (now: number) => boolean {
  const capacity = perSecond * BURST_SECONDS;
  let tokens = capacity;
  let filledAt = performance.now();
  return (now) => {
    tokens = Math.min(capacity, tokens + ((now - filledAt) * perSecond) / 1000);
    filledAt = now;
    if (tokens < 1) return false;
    tokens--;
    return true;
  };
}

function answer(
  request: IncomingMessage,
  response: ServerResponse,
  isRefused: boolean,
  settings: SourceSettings,
): void {
  const send = (status: number, body: unknown, headers: Record<string, string> = {}) => {
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
  if (isRefused) {
    counts.refused++;
    send(429, hostedErrors.tooManyRequests, { 'Retry-After': String(RETRY_AFTER_SECONDS) });
    return;
  }
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://source.bench');
  const target = parseHostedPath(pathname);
  if (!target) send(404, hostedErrors.noSuchPath);
  else if (target.kind === 'list') sendList(searchParams, settings, send);
  else if (target.kind === 'execution-inputs') {
    counts.details++;
    send(409, hostedErrors.notCommitted);
  } else {
    counts.details++;
    const n = numberOf(target.messageId);
    if (n >= settings.records) {
      send(404, hostedErrors.noSuchMessage);
      return;
    }
    const text = JSON.stringify(recordOf(n));
    const etag = etagOf(text);
    if (request.headers['if-none-match'] === etag) {
      response.writeHead(304, { ETag: etag }).end();
      return;
    }
    counts.records++;
    send(200, text, { ETag: etag });
  }
}

/** A cursor is the number of the first record of the next page. */
function sendList(
  query: URLSearchParams,
  { records, isWhole }: SourceSettings,
  send: (status: number, body: unknown) => void,
): void {
  counts.lists++;
  const limit = Number(query.get('limit') ?? 20);
  const maxLimit = isWhole ? LANESCAN_MAX_LIMIT : HOSTED_MAX_LIMIT;
  if (limit > maxLimit) {
    send(400, hostedErrors.limitTooHigh(maxLimit));
    return;
  }
  if (query.has('sentBefore')) {
    send(400, hostedErrors.unknownParameter('sentBefore'));
    return;
  }
  const newest = Number(query.get('cursor') ?? records - 1);
  const page = Array.from({ length: Math.min(limit, newest + 1) }, (_, index) => recordOf(newest - index));
  const next = newest - page.length;
  if (isWhole) counts.records += page.length;
  send(200, listBody(isWhole ? page : page.map(summaryOf), limit, next >= 0 ? String(next) : undefined));
}

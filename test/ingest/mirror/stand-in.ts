/**
 * A server that speaks the API as the hosted service does, and has its moods: lists of summaries, 429 with
 * Retry-After, 500s, slow answers, bodies that break off, cursors that expire.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { compareNewestFirst } from '../../../src/domain/filters/matches.ts';
import type { Message } from '../../../src/domain/message.ts';
import { listenWith } from '../../listening.ts';
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

export type StandIn = Awaited<ReturnType<typeof startStandIn>>;

export async function startStandIn(...messages: readonly Message[]) {
  let era = 0;
  const requests: SeenRequest[] = [];
  const standIn = {
    url: (await listenWith(answer)).origin,
    /** By message id; tests change it as they like. Values need not be valid. */
    records: new Map<string, Message>(),
    requests,
    /** Decides about each request before it is answered. */
    mood: (_request: SeenRequest): Mood | undefined => undefined,
    /** Cursors issued so far are not taken any more. */
    expireCursors(): void {
      era++;
    },
    /** Records in the list instead of summaries. */
    isWhole: false,
    maxLimit: 100,
    /** Whether sentBefore is a parameter that it knows. */
    knowsTimes: false,
    /** By message id; a message without any is answered with 409. */
    executionInputs: new Map<string, unknown>(),
    add(...more: readonly Message[]): void {
      for (const message of more) standIn.records.set(message.messageId, message);
    },
  };
  standIn.add(...messages);
  return standIn;

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://stand.in');
    const at = performance.now();
    const { headers } = request;
    const seen: SeenRequest = { at, path: pathname, query: searchParams, headers, status: 0 };
    standIn.requests.push(seen);
    const mood = standIn.mood(seen);
    if (mood === 'silent') return;
    if (mood === 'truncated') {
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '1000' });
      response.write('{"data":[{"messageId":"0x');
      setTimeout(() => response.destroy(), 20);
      return;
    }
    const reply = mood ?? replyTo(seen);
    seen.status = reply.status;
    response.writeHead(reply.status, { 'Content-Type': 'application/json', ...reply.headers });
    response.end(reply.body ?? '{"error":"MOOD","message":"Not now."}');
  }

  function replyTo({ path, query, headers }: SeenRequest): Reply {
    const target = parseHostedPath(path);
    if (!target) return reply(404, hostedErrors.noSuchPath);
    if (target.kind === 'list') return list(query);
    if (target.kind === 'execution-inputs') {
      const inputs = standIn.executionInputs.get(target.messageId);
      return inputs ? reply(200, inputs) : reply(409, hostedErrors.notCommitted);
    }
    const record = standIn.records.get(target.messageId);
    if (!record) return reply(404, hostedErrors.noSuchMessage);
    const ETag = etagOf(JSON.stringify(record));
    if (headers['if-none-match'] === ETag) return { status: 304, headers: { ETag }, body: '' };
    return { ...reply(200, record), headers: { ETag } };
  }

  function list(query: URLSearchParams): Reply {
    const limit = Number(query.get('limit') ?? 20);
    if (limit > standIn.maxLimit) return reply(400, hostedErrors.limitTooHigh(standIn.maxLimit));
    if (query.has('sentBefore') && !standIn.knowsTimes)
      return reply(400, hostedErrors.unknownParameter('sentBefore'));
    const cursor = query.get('cursor');
    const [cursorEra, time = '', id = ''] =
      cursor === null ? [] : Buffer.from(cursor, 'base64url').toString().split('|');
    if (cursor !== null && cursorEra !== String(era)) return reply(400, hostedErrors.expiredCursor);
    const before = Date.parse(query.get('sentBefore') ?? '') || Number.POSITIVE_INFINITY;
    const all = [...standIn.records.values()]
      .sort(compareNewestFirst)
      .filter(({ sendTimestamp }) => Date.parse(sendTimestamp) < before)
      .filter(
        ({ sendTimestamp, messageId }) =>
          cursor === null || sendTimestamp < time || (sendTimestamp === time && messageId < id),
      );
    const page = all.slice(0, limit);
    const last = page.at(-1);
    const next =
      all.length > page.length && last !== undefined
        ? Buffer.from(`${era}|${last.sendTimestamp}|${last.messageId}`).toString('base64url')
        : undefined;
    return reply(200, listBody(standIn.isWhole ? page : page.map(summaryOf), limit, next));
  }
}

type Reply = Exclude<Mood, string>;

const reply = (status: number, body: unknown): Reply => ({ status, body: JSON.stringify(body) });

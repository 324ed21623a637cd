/**
 * Whether an answer is right: one of the documented statuses, in the one shape of an error, and with the very rows that
 * `matches` finds.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { OpenApiDocument } from '../../src/api/documentation/openapi.ts';
import { ApiError, errorCatalogue } from '../../src/domain/errors.ts';
import type { CursorCodec } from '../../src/domain/filters/cursor.ts';
import { compareNewestFirst, matches, pageKey } from '../../src/domain/filters/matches.ts';
import type { SearchQuery } from '../../src/domain/filters/query.ts';
import { parseSearch, type RawParameters } from '../../src/domain/filters/search-parameters.ts';
import { type Message, summaryKeys } from '../../src/domain/message.ts';
import type { SearchBody } from '../api/running-server.ts';
import type { GeneratedRequest } from './request-generator.ts';
import type { Outcome, WireAnswer } from './wire.ts';

/** Never 500 or 503, whatever is sent. */
const statusesEver = [200, 204, 304, 400, 404, 405, 406, 409, 414, 429];

/** Names of what is behind the service; a request that says them itself may be quoted. */
const insides =
  /\n\s+at |node_modules|\.[mc]?[tj]s:\d|syntax error at|relation "|column "|SQLSTATE|fastify|FST_|pg_catalog|ECONN|TypeError|undefined/g;

/** Says what is wrong with an outcome; undefined where nothing is. */
export function createJudge(
  document: OpenApiDocument,
  messages: readonly Message[],
  cursors: CursorCodec,
): (request: GeneratedRequest, outcome: Outcome) => string | undefined {
  const newestFirst = [...messages].sort(compareNewestFirst);
  const requestIds = new Set<string>();
  const schemas = schemasOf(document);
  // OpenAPI: a path without parameters is matched before one with them.
  const documented = Object.entries(document.paths)
    .sort(([a], [b]) => Number(a.includes('{')) - Number(b.includes('{')))
    .map(([path, { get }]) => ({
      pattern: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+').replaceAll('.', '\\.')}$`),
      path,
      statuses: Object.keys(get.responses).map(Number),
    }));

  const search = ({ filters, view, limit, after }: SearchQuery) => {
    const all = newestFirst.filter((message) => matches(filters, message));
    const behind = after === null ? all : all.filter((message) => isBehind(message, after));
    const page = behind.slice(0, limit);
    return { rows: view === 'full' ? page : page.map(summaryOf), isLast: behind.length <= limit };
  };

  const searchProblem = (parameters: RawParameters, answer: WireAnswer): string | undefined => {
    const asked = attempt(() => parseSearch(parameters, cursors));
    if (asked instanceof ApiError) return `is 200 and should be rejected: ${asked.message}`;
    const { data, pagination } = JSON.parse(answer.body.toString()) as SearchBody;
    const { rows, isLast } = search(asked);
    if (JSON.stringify(data) !== JSON.stringify(rows)) {
      return `has ${data.length} rows where ${rows.length} are right, or others`;
    }
    if (pagination.limit !== asked.limit || pagination.hasNextPage === isLast)
      return 'has a wrong pagination';
    if ((pagination.cursor === null) !== isLast) return 'has a cursor behind the end, or none before it';
    if (pagination.cursor === null) return undefined;
    const next = cursors.decode(pagination.cursor);
    const last = rows.at(-1);
    return JSON.stringify(next.filters) === JSON.stringify(asked.filters) &&
      JSON.stringify(next.after) === JSON.stringify(last && pageKey(last as Message))
      ? undefined
      : 'has a cursor of something else';
  };

  const successProblem = (path: string, parameters: RawParameters, answer: WireAnswer) => {
    const plain = path.replace(/^\/v2/, '');
    if (plain === '/messages') return searchProblem(parameters, answer);
    // That an export has the rows of a search is shown in test/export/export.test.ts.
    if (plain === '/messages/export') return undefined;
    const [, id] = /^\/messages\/(0x\w{64})$/.exec(plain) ?? [];
    if (id !== undefined) {
      const expected = messages.find(({ messageId }) => messageId === id.toLowerCase());
      return answer.body.toString() === JSON.stringify(expected) ? undefined : 'is not that message';
    }
    const validate = schemas.get(documented.find(({ pattern }) => pattern.test(path))?.path ?? '');
    if (!validate || validate(JSON.parse(answer.body.toString()))) return undefined;
    return `does not keep to its schema: ${JSON.stringify(validate.errors?.[0])}`;
  };

  return (request, outcome) => {
    if (outcome === 'closed without an answer') return request.isBroken ? undefined : outcome;
    if (outcome === 'no answer in time') return outcome;
    const { status, headers, body } = outcome;
    if (!statusesEver.includes(status)) return `has the status ${status}: ${body.toString().slice(0, 300)}`;
    const { 'x-request-id': requestId = '', 'x-content-type-options': sniffing } = headers;
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(requestId)) return 'has no request id';
    if (requestIds.has(requestId)) return 'has a request id that was given before';
    requestIds.add(requestId);
    if (sniffing !== 'nosniff') return 'may be sniffed';
    if ('x-injected' in headers) return 'has a header that the request wrote';

    const target = targetOf(request.text);
    const route = target && documented.find(({ pattern }) => pattern.test(target.path));
    if (route && status !== 204 && !route.statuses.includes(status))
      return `has a status that is not documented: ${status}`;
    if (status >= 400) return body.length === 0 ? undefined : errorProblem(outcome, request.text);
    if (status !== 200 || body.length === 0 || !target) return undefined;
    return successProblem(target.path, target.parameters, outcome);
  };
}

function errorProblem({ status, headers, body }: WireAnswer, request: string): string | undefined {
  if (headers['content-type'] !== 'application/json; charset=utf-8') return 'is an error that is no JSON';
  const text = body.toString();
  const error = JSON.parse(text);
  if (Object.keys(error).join() !== 'error,message,requestId,details') return `has another shape: ${text}`;
  const entry = errorCatalogue[error.error as keyof typeof errorCatalogue];
  if (entry?.status !== status) return `has a code that goes with another status: ${text.slice(0, 300)}`;
  if (error.requestId !== headers['x-request-id']) return 'has another request id than its header';
  if (text.length > 20_000) return `has ${text.length} characters`;
  if (typeof error.message !== 'string' || !Array.isArray(error.details)) return `has another shape: ${text}`;
  const shown = text.match(insides)?.filter((word) => !decodedTwice(request).includes(word)) ?? [];
  return shown.length === 0 ? undefined : `shows the inside: ${shown.join(', ')} in ${text.slice(0, 500)}`;
}

/** However often a request was encoded, what it says itself is found in this. */
function decodedTwice(text: string): string {
  const once = new URLSearchParams(`x=${text.replaceAll('&', '%26')}`).get('x') ?? '';
  const twice = new URLSearchParams(`x=${once.replaceAll('&', '%26')}`).get('x') ?? '';
  return `${text} ${once} ${twice}`;
}

interface Target {
  readonly path: string;
  readonly parameters: RawParameters;
}

/** What the request line asks for, as the service reads it; undefined where it is no request line. */
function targetOf(text: string): Target | undefined {
  const line = /^GET (\S+) HTTP\/1\.[01]\r\n/.exec(text)?.[1];
  if (line === undefined) return undefined;
  const [, rawPath = '', query = ''] = /^([^?#]*)[?#]?(.*)$/.exec(line) ?? [];
  const path = attempt(() => decodeURIComponent(rawPath.replace(/^http:\/\/[^/]*/, '')));
  if (path instanceof Error) return undefined;
  return {
    path: path.replace(/\/+/g, '/').replace(/(?<=.)\/$/, ''),
    parameters: [...new URLSearchParams(query)],
  };
}

function isBehind(message: Message, after: { sentAt: number; messageId: string }): boolean {
  const { sentAt, messageId } = pageKey(message);
  return sentAt < after.sentAt || (sentAt === after.sentAt && messageId < after.messageId);
}

function summaryOf(message: Message): Partial<Message> {
  return Object.fromEntries(summaryKeys.map((name) => [name, message[name]]));
}

function attempt<T>(work: () => T): T | ApiError {
  try {
    return work();
  } catch (error) {
    return error as ApiError;
  }
}

function schemasOf(document: OpenApiDocument): ReadonlyMap<string, ValidateFunction> {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(document, 'openapi.json');
  return new Map(
    Object.keys(document.paths).flatMap((path) => {
      const success = document.paths[path]?.get.responses[200];
      if (!success || !('content' in success) || !('application/json' in success.content)) return [];
      const place = encodeURIComponent(path.replaceAll('/', '~1'));
      const schema = `openapi.json#/paths/${place}/get/responses/200/content/application~1json/schema`;
      return [[path, ajv.compile({ $ref: schema })]];
    }),
  );
}

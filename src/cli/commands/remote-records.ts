/** A client of a Lanescan server, for the reading commands with `--url`. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Diagnosis } from '../../api/execution/execution-schema.ts';
import type { Attempt as AttemptBody, Attempts, Reason } from '../../api/routes/history-schema.ts';
import type { Lane } from '../../api/routes/lanes-schema.ts';
import type { LookupMatch } from '../../api/routes/lookup-schema.ts';
import type { Network } from '../../api/routes/networks-schema.ts';
import { MAX_TOKEN_ADDRESSES } from '../../api/routes/tokens-route.ts';
import { basicAuthorization, parseRetryAfterMs } from '../../base/http-headers.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { withoutCredentials } from '../../base/url-parts.ts';
import type { Attempt } from '../../domain/attempts.ts';
import type { DecodedError } from '../../domain/failures/revert-data.ts';
import type { RawParameters } from '../../domain/filters/search-parameters.ts';
import {
  createNames,
  type NamedAddress,
  type NamedToken,
  tokenAddressesOf,
} from '../../domain/names/message-names.ts';
import { readBody } from '../../ingest/bounded-exchange.ts';
import { printable } from '../../text/format.ts';
import { UsageError } from '../config/config.ts';
import { clipped } from '../output/terminal-text.ts';
import { lanescanVersion } from '../version.ts';
import type { Records } from './records.ts';

const MAX_BODY_BYTES = 64 * 1024 * 1024;
/** For an answer to begin, and between two pieces of it. */
const TIMEOUT_MS = 60_000;
/** A request that is refused by a rate limit or in overload is repeated so often, each time after the requested wait. */
const MAX_WAITS = 5;
const MAX_WAIT_MS = 60_000;
const MAX_MESSAGE_LENGTH = 300;

export interface RemoteOptions {
  readonly url: string;
  readonly apiKey: string | null;
  readonly signal: AbortSignal;
  /** Called once, with the first answer that is marked as simulated. */
  readonly onSimulated: () => void;
}

export function createRemoteRecords(options: RemoteOptions): Records {
  const { url, apiKey, signal, onSimulated } = options;
  const given = parseUrl(url);
  const server = withoutCredentials(given).href.replace(/\/$/, '');
  const authorization = basicAuthorization(given);
  const headers = {
    'User-Agent': `lanescan/${lanescanVersion}`,
    ...(authorization !== null && { Authorization: authorization }),
    ...(apiKey !== null && { 'X-API-Key': apiKey }),
  };
  let isNoted = false;

  /** Runs an exchange whose answer may be silent for a limited time; explains its errors. */
  const withIdleTimeout = async <T>(use: (idle: IdleTimeout) => Promise<T>): Promise<T> => {
    const idle = createIdleTimeout(signal);
    try {
      return await use(idle);
    } catch (error) {
      signal.throwIfAborted();
      throw explained(error, server, idle.signal.aborted);
    } finally {
      idle.end();
    }
  };

  /** The answer, after the waits that the server asks for. Every error but 404 is thrown. */
  const request = async (path: string, parameters: RawParameters, idle: IdleTimeout): Promise<Response> => {
    const target = new URL(`${server}${path}`);
    for (const [name, value] of parameters) target.searchParams.append(name, value);
    for (let waits = 0; ; waits++) {
      idle.restart();
      // Redirects are not followed: they would take the key to another host.
      const response = await fetch(target, { headers, redirect: 'manual', signal: idle.signal });
      if (!isNoted && response.headers.get('x-lanescan-simulated') === 'true') {
        isNoted = true;
        onSimulated();
      }
      if (response.ok || response.status === 404) return response;
      const waitMs = parseRetryAfterMs(response.headers.get('retry-after'), Date.now());
      const isBusy = response.status === 429 || response.status === 503;
      if (!isBusy || waitMs === null || waitMs > MAX_WAIT_MS || waits === MAX_WAITS)
        throw await refusalOf(response, server);
      await response.body?.cancel();
      idle.end();
      await delay(waitMs, undefined, { signal });
    }
  };

  /** Undefined for a message that the server does not know. */
  const readJson = (path: string, parameters: RawParameters = []): Promise<unknown> =>
    withIdleTimeout(async (idle) => {
      const response = await request(path, parameters, idle);
      const body = parseJson((await readBody(response, MAX_BODY_BYTES)).toString('utf8'));
      if (response.ok) return body;
      if ((body as { error?: unknown } | undefined)?.error === 'MESSAGE_NOT_FOUND') return undefined;
      throw notLanescan(server);
    });

  /** The `data` of an answer, and what is beside it. */
  const readList = async <T>(path: string, parameters?: RawParameters) => {
    const body = (await readJson(path, parameters)) as ListBody<T> | undefined;
    if (!Array.isArray(body?.data)) throw notLanescan(server);
    return body as ListBody<T>;
  };

  /** The same for names, which a server of an earlier version does not have. */
  const readNames = async <T>(path: string, parameters?: RawParameters): Promise<readonly T[]> =>
    (await readList<T>(path, parameters).catch(ignoreMissing)).data;

  const lookUp = (text: string) => readNames<LookupMatch>('/v2/lookup', [['text', text]]);

  const lanes: Records['lanes'] = async (ends, windowDays) => {
    const { data, total = data.length } = await readList<Lane>('/v2/lanes', [
      ...(Object.entries(ends) as [string, string][]),
      ['windowDays', String(windowDays)],
    ]);
    return { lanes: data, total };
  };

  return {
    async search(parameters) {
      const { data, pagination } = await readList<object>('/v2/messages', parameters);
      return { records: data.map((record) => JSON.stringify(record)), cursor: pagination?.cursor ?? null };
    },
    async findMessage(messageId) {
      const body = await readJson(`/v2/messages/0x${messageId}`);
      return body === undefined ? undefined : JSON.stringify(body);
    },
    async findMessagesByPrefix(digits) {
      const matches = (await lookUp(`0x${digits}`)).filter(({ kind }) => kind === 'message');
      if (matches.length === 0) return [];
      const ids = matches.map(({ value }) => value).join(',');
      const { data } = await readList<object>('/v2/messages', [['messageId', ids]]);
      return data.map((record) => JSON.stringify(record));
    },
    async names(messages) {
      const addresses = tokenAddressesOf(messages);
      const parts = Array.from({ length: Math.ceil(addresses.length / MAX_TOKEN_ADDRESSES) }, (_, index) =>
        addresses.slice(index * MAX_TOKEN_ADDRESSES, (index + 1) * MAX_TOKEN_ADDRESSES),
      );
      const tokens: NamedToken[] = [];
      for (const part of parts)
        tokens.push(...(await readNames<NamedToken>('/v2/tokens', [['address', part.join(',')]])));
      const labels = await readNames<NamedAddress>('/v2/labels');
      const networks = await readNames<Network>('/v2/networks', [['active', 'true']]);
      const urls = new Map(networks.map(({ chainSelector, explorerUrls }) => [chainSelector, explorerUrls]));
      return { ...createNames(tokens, labels), explorerUrls: (selector) => urls.get(selector) ?? null };
    },
    lookUp,
    async attempts({ messageId }) {
      const body = (await readJson(`/v2/messages/${messageId}/attempts`)) as Attempts | undefined;
      if (!Array.isArray(body?.attempts)) throw notLanescan(server);
      return body.attempts.map(attemptOf);
    },
    async diagnosis({ messageId }) {
      const body = (await readJson(`/v2/messages/${messageId}/diagnosis`)) as Diagnosis | undefined;
      if (typeof body?.text !== 'string') throw notLanescan(server);
      return body;
    },
    lanes,
    async auditMaterial(ends) {
      const page = await lanes(ends, 1, 0);
      const { data } = await readList<Network>('/v2/networks');
      const chosen = new Set(Object.values(ends));
      const networks = data.filter(({ chainSelector }) => chosen.size === 0 || chosen.has(chainSelector));
      return {
        lanes: page.lanes,
        counted: [],
        losses: networks.flatMap(lossesOf),
        remarks: [
          ...networks
            .filter(({ indexing }) => indexing?.health === 'stopped')
            .map(({ name }) => `Indexing of ${printable(name)} has stopped: newer messages are not checked.`),
          ...(page.total > page.lanes.length
            ? [`The server lists ${page.lanes.length} of ${page.total} lanes; the others are not checked.`]
            : []),
          'Over the network, the ends of lanes and the commits are not checked: run `lanescan audit` beside the database for that.',
        ],
      };
    },
    async *export(parameters, { format, withAttempts }) {
      const idle = createIdleTimeout(signal);
      try {
        const shape: RawParameters = [
          ['format', format],
          ...(withAttempts ? [['attempts', 'true'] as const] : []),
        ];
        const response = await request('/v2/messages/export', [...parameters, ...shape], idle);
        if (!response.ok) throw notLanescan(server);
        for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
          idle.restart();
          yield { bytes: Buffer.from(chunk), rows: null };
        }
      } catch (error) {
        signal.throwIfAborted();
        throw explained(error, server, idle.signal.aborted);
      } finally {
        idle.end();
      }
    },
  };
}

function ignoreMissing(error: unknown): ListBody<never> {
  if (error instanceof NotLanescanError) return { data: [] };
  throw error;
}

interface ListBody<T> {
  readonly data: readonly T[];
  readonly total?: number;
  readonly pagination?: { readonly cursor?: string | null };
}

interface IdleTimeout {
  /** Aborted after TIMEOUT_MS without a restart, or when the process stops. */
  readonly signal: AbortSignal;
  restart(): void;
  end(): void;
}

function createIdleTimeout(stop: AbortSignal): IdleTimeout {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  return {
    signal: AbortSignal.any([stop, controller.signal]),
    restart() {
      clearTimeout(timer);
      timer = setTimeout(() => controller.abort(), TIMEOUT_MS);
    },
    end: () => clearTimeout(timer),
  };
}

function parseUrl(text: string): URL {
  const remedy = 'Give the part before /v2, such as https://lanescan.example.';
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    throw new UsageError('--url is not a URL that begins with http:// or https://.', remedy);
  if (url.search !== '' || url.hash !== '')
    throw new UsageError('--url has a query or a fragment.', `${remedy} Filters are flags.`);
  url.pathname = url.pathname.replace(/\/+$/, '').replace(/\/v2(\/messages)?$/, '');
  return url;
}

function lossesOf({ name, indexing }: Network): readonly string[] {
  const findings = indexing?.findings ?? [];
  return findings.filter(({ isLoss }) => isLoss).map(({ text }) => `${printable(name)}: ${printable(text)}`);
}

function attemptOf({ networkName: _, reason, ...attempt }: AttemptBody): Attempt {
  return {
    ...attempt,
    // A server of an earlier release does not say.
    removedAt: attempt.removedAt ?? null,
    transactionError: attempt.transactionError ?? null,
    logs: attempt.logs ?? null,
    reason: reason && {
      ...reason,
      saidBy: reason.saidBy ?? 'unknown',
      error: reason.error && errorOf(reason.error),
      wrappers: reason.wrappers.map(errorOf),
    },
  };
}

function errorOf({ name, arguments: given, cut, namedBy }: NonNullable<Reason['error']>): DecodedError {
  return {
    name,
    arguments: given.map((argument) => ({ name: argument.name ?? undefined, value: argument.value })),
    isCut: cut,
    isFromOperator: namedBy === 'operator',
    ...(namedBy === 'program' && { isFromProgram: true as const }),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function refusalOf(response: Response, server: string): Promise<OperatorError> {
  const { status, headers } = response;
  const location = headers.get('location');
  if (status >= 300 && status < 400 && location !== null) {
    await response.body?.cancel();
    const target = clipped(printable(location), MAX_MESSAGE_LENGTH);
    return new OperatorError(`${server} redirects to ${target}.`, 'If you trust it, give its URL.');
  }
  const body = parseJson((await readBody(response, MAX_BODY_BYTES)).toString('utf8'));
  const { message } = (body ?? {}) as { message?: unknown };
  const said =
    typeof message === 'string'
      ? `: ${clipped(printable(message), MAX_MESSAGE_LENGTH)}`
      : ' without a reason.';
  const remedy =
    status === 401 || status === 403
      ? 'Give the key in LANESCAN_API_KEY, or credentials in the URL.'
      : status === 429 || status >= 500
        ? 'Try again later.'
        : '';
  return new OperatorError(`${server} answered ${status}${said}`, remedy);
}

/** A path that is not there, or an answer of another form. */
class NotLanescanError extends OperatorError {}

function notLanescan(server: string): OperatorError {
  return new NotLanescanError(
    `${server} answers, but not as a Lanescan server does.`,
    'Check the URL: it is the part before /v2.',
  );
}

function explained(error: unknown, server: string, isTimeout: boolean): unknown {
  if (error instanceof OperatorError) return error;
  if (isTimeout)
    return new OperatorError(`${server} was silent for ${TIMEOUT_MS / 1000} s.`, 'Try again later.');
  const { message, cause } = error as Error & { cause?: { code?: string; message?: string } };
  return new OperatorError(
    `${server} could not be read (${cause?.code ?? cause?.message ?? message}).`,
    'Check the URL and whether the server runs.',
    { cause: error },
  );
}

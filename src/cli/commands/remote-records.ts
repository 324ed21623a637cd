/** The records of a Lanescan server, for the reading commands with `--url`. */
import { ResponseTooLongError } from '../../base/bounded-exchange.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Attempt as AttemptBody } from '../../client/api-types.ts';
import { createClient, ResponseError, serverUrlProblem, TransportError } from '../../client/client.ts';
import type { Attempt } from '../../domain/attempts.ts';
import { createNames, tokenAddressesOf } from '../../domain/names/message-names.ts';
import { printable } from '../../text/format.ts';
import { UsageError } from '../config/config.ts';
import { clipped } from '../output/terminal-text.ts';
import { lanescanVersion } from '../version.ts';
import type { Records } from './records-interface.ts';

const MAX_MESSAGE_LENGTH = 300;

/** @param onSimulated called once, with the first response that is marked as simulated */
export function createRemoteRecords(
  url: string,
  apiKey: string | null,
  signal: AbortSignal,
  onSimulated: () => void,
): Records {
  const problem = serverUrlProblem(url);
  if (problem !== null)
    throw new UsageError(
      `--url ${problem}.`,
      'Give the part before /v2, such as https://lanescan.example. Filters are flags.',
    );
  let isNoted = false;
  const client = createClient({
    url,
    signal,
    headers: { 'User-Agent': `lanescan/${lanescanVersion}`, ...(apiKey !== null && { 'X-API-Key': apiKey }) },
    async fetch(target, init) {
      const response = await fetch(target, init);
      if (!isNoted && response.headers.get('x-lanescan-simulated') === 'true') {
        isNoted = true;
        onSimulated();
      }
      return response;
    },
  });
  const { server } = client;

  /** The response, with errors that say what to do. */
  const explained = async <T>(response: Promise<T>): Promise<T> => {
    try {
      return await response;
    } catch (error) {
      signal.throwIfAborted();
      throw explanation(error, server);
    }
  };
  /** The same for a list: another kind of server may answer in another form. */
  const checked = async <T extends { readonly data: readonly unknown[] }>(response: Promise<T>) => {
    const body = await explained(response);
    if (!Array.isArray(body?.data)) throw notLanescan(server);
    return body;
  };
  /** Undefined where the server does not know the message. */
  const known = <T>(response: Promise<T>): Promise<T | undefined> =>
    explained(
      response.catch((error) => {
        if (error instanceof ResponseError && error.code === 'MESSAGE_NOT_FOUND') return undefined;
        throw error;
      }),
    );
  /** Names, which a server of an earlier version does not have. */
  const optional = async <T>(response: Promise<{ readonly data: readonly T[] }>): Promise<readonly T[]> => {
    try {
      return (await checked(response)).data;
    } catch (error) {
      if (error instanceof NotLanescanError) return [];
      throw error;
    }
  };

  const lookUp = (text: string) => optional(client.lookup(text));
  const search = async (query: Parameters<typeof client.search>[0]) => {
    const { data, pagination } = await checked(client.search(query));
    return { records: data.map((record) => JSON.stringify(record)), cursor: pagination?.cursor ?? null };
  };
  const lanes: Records['lanes'] = async (ends, windowDays) => {
    const { data, total = data.length } = await checked(client.lanes({ ...ends, windowDays }));
    return { lanes: data, total };
  };

  return {
    search,
    async findMessage(messageId) {
      const message = await known(client.message(`0x${messageId}`));
      return message === undefined ? undefined : JSON.stringify(message);
    },
    async findMessagesByPrefix(digits) {
      const matches = (await lookUp(`0x${digits}`)).filter(({ kind }) => kind === 'message');
      if (matches.length === 0) return [];
      return (await search({ messageId: matches.map(({ value }) => value).join(',') })).records;
    },
    async names(messages) {
      const tokens = await optional(client.tokens(tokenAddressesOf(messages)).then((data) => ({ data })));
      const labels = await optional(client.labels());
      const networks = await optional(client.networks({ active: true }));
      const urls = new Map(networks.map(({ chainSelector, explorerUrls }) => [chainSelector, explorerUrls]));
      return { ...createNames(tokens, labels), explorerUrls: (selector) => urls.get(selector) ?? null };
    },
    lookUp,
    async attempts({ messageId }) {
      const body = await known(client.attempts(messageId));
      if (!Array.isArray(body?.attempts)) throw notLanescan(server);
      return body.attempts.map(attemptOf);
    },
    async diagnosis({ messageId }) {
      const body = await known(client.diagnosis(messageId));
      if (typeof body?.text !== 'string') throw notLanescan(server);
      return body;
    },
    lanes,
    async auditMaterial(ends) {
      const page = await lanes(ends, 1, 0);
      const { data } = await checked(client.networks());
      const chosen = new Set(Object.values(ends));
      const networks = data.filter(({ chainSelector }) => chosen.size === 0 || chosen.has(chainSelector));
      return {
        lanes: page.lanes,
        counted: [],
        losses: networks.flatMap(({ name, indexing }) => {
          const losses = indexing?.findings?.filter(({ isLoss }) => isLoss) ?? [];
          return losses.map(({ text }) => `${printable(name)}: ${printable(text)}`);
        }),
        warnings: [
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
      const shape = [['format', format], ...(withAttempts ? [['attempts', 'true']] : [])] as [
        string,
        string,
      ][];
      try {
        for await (const bytes of client.export([...parameters, ...shape])) yield { bytes, rows: null };
      } catch (error) {
        signal.throwIfAborted();
        throw explanation(error, server);
      }
    },
  };
}

function attemptOf({ networkName: _, reason, ...attempt }: AttemptBody): Attempt {
  return {
    ...attempt,
    // A server of an earlier release does not say.
    removedAt: attempt.removedAt ?? null,
    transactionError: attempt.transactionError ?? null,
    logs: attempt.logs ?? null,
    reason: reason && { ...reason, saidBy: reason.saidBy ?? 'unknown' },
  };
}

/** A path that is not there, or a response of another form. */
class NotLanescanError extends OperatorError {}

function notLanescan(server: string): OperatorError {
  return new NotLanescanError(
    `${server} answers, but not as a Lanescan server does.`,
    'Check the URL: it is the part before /v2.',
  );
}

function explanation(error: unknown, server: string): unknown {
  if (error instanceof TransportError)
    return error.cause instanceof SyntaxError
      ? notLanescan(server)
      : new OperatorError(error.message, 'Check the URL and whether the server runs.', { cause: error });
  if (error instanceof ResponseTooLongError)
    return new OperatorError(`${server} sent ${error.message}.`, 'Ask for less at once, with --limit.');
  if (!(error instanceof ResponseError)) return error;
  const { status, code, location } = error;
  if (location !== null) {
    const target = clipped(printable(location), MAX_MESSAGE_LENGTH);
    return new OperatorError(`${server} redirects to ${target}.`, 'If you trust it, give its URL.');
  }
  if (status === 404) return notLanescan(server);
  const message =
    code === null ? ' without a reason.' : `: ${clipped(printable(error.message), MAX_MESSAGE_LENGTH)}`;
  const remedy =
    status === 401 || status === 403
      ? 'Give the key in LANESCAN_API_KEY, or credentials in the URL.'
      : status === 429 || status >= 500
        ? 'Try again later.'
        : '';
  return new OperatorError(`${server} answered ${status}${message}`, remedy);
}

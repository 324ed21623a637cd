/**
 * The queries of all pages.
 *
 * While the server cannot be reached, a probe is sent every few seconds; when it is back, all queries are refetched.
 */
import {
  keepPreviousData,
  QueryClient,
  queryOptions,
  type UndefinedInitialDataOptions,
} from '@tanstack/react-query';
import type { Message, MessagePage } from '../../../src/client/api-types.ts';
import { createClient, ResponseError } from '../../../src/client/client.ts';
import { setClock } from './clock.ts';
import { apiParameters, type SearchView, writeParameters } from './search-view.ts';
import { createStore } from './store.ts';

/** The prefix of the server's paths: empty at the root of its host. */
export const basePath =
  document.querySelector<HTMLMetaElement>('meta[name="lanescan-base-path"]')?.content ?? '';

/** As commands and SDKs take it: the part before /v2. */
export const serverUrl = `${location.origin}${basePath}`;

export const api = createClient({
  url: basePath,
  // Queries are retried below.
  maxRetries: 0,
  async fetch(url, init) {
    try {
      // After a change, a response from the browser's cache would be old. An unchanged response costs a 304.
      const response = await fetch(url, { ...init, cache: 'no-cache', redirect: 'follow' });
      setClock(response.headers.get('Date'));
      if (response.ok) noteReachable();
      return response;
    } catch (error) {
      if (!init.signal?.aborted) noteUnreachable();
      throw error;
    }
  },
});

// ---- Reachability

const PROBE_INTERVAL_MS = 2_000;

export const serverAway = createStore(false);
let probe: ReturnType<typeof setTimeout> | undefined;

function noteUnreachable(): void {
  serverAway.set(true);
  probe ??= setTimeout(() => {
    probe = undefined;
    // A hidden page sends no probes.
    if (document.visibilityState === 'hidden') noteUnreachable();
    else checkServer();
  }, PROBE_INTERVAL_MS);
}

/** Finds out whether the server can be reached, after a connection was lost for an unknown reason. */
export function checkServer(): void {
  api.readiness().catch(noteUnreachable);
}

function noteReachable(): void {
  if (!serverAway.get()) return;
  clearTimeout(probe);
  probe = undefined;
  serverAway.set(false);
  void queryClient.invalidateQueries();
}

// ---- Queries

const MAX_RETRIES = 5;
const TYPING_MS = 150;
/** The same where the server simulates executions for the answer. */
const COSTLY_TYPING_MS = 600;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // The stream reports changes; a tab that gets the focus again after this time refetches all the same.
      staleTime: 10_000,
      networkMode: 'always',
      retry: (failures, error) =>
        error instanceof ResponseError && error.isTemporary && failures < MAX_RETRIES,
      retryDelay: (_failures, error) => (error instanceof ResponseError ? error.retryAfterMs : null) ?? 1_000,
    },
  },
});

/** A query with defaults for what has none; it is aborted with its signal. */
function read<T>(
  queryKey: readonly unknown[],
  ask: (signal: AbortSignal) => Promise<T>,
  options: Omit<UndefinedInitialDataOptions<T>, 'queryKey' | 'queryFn'> = {},
) {
  return queryOptions({ queryKey, queryFn: ({ signal }) => ask(signal), ...options });
}

/** Statistics change with every message: they are polled. */
const polled = { refetchInterval: 30_000 };

export const searchUrl = (view: SearchView) => `/v2/messages${writeParameters(apiParameters(view))}`;

export const searchQuery = (view: SearchView) =>
  read(['messages', apiParameters(view)], (signal) => api.search(apiParameters(view), signal), {
    placeholderData: keepPreviousData,
    // Rows must not move under the pointer: new ones appear only when the user asks for them.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 300_000,
  });

export const messageKeys = (messageId: string) => {
  const id = messageId.toLowerCase();
  return { message: ['message', id], history: ['history', id], attempts: ['attempts', id] } as const;
};

export const messageQuery = (messageId: string) =>
  read(messageKeys(messageId).message, (signal) => api.message(messageId, signal), {
    // Coming from a list, the page shows the list's record until its own arrives.
    placeholderData: () =>
      queryClient
        .getQueriesData<MessagePage>({ queryKey: ['messages'] })
        .flatMap(([, page]) => page?.data ?? [])
        .find((message) => message.messageId === messageId.toLowerCase()),
  });

export const historyQuery = (messageId: string) =>
  read(messageKeys(messageId).history, (signal) => api.history(messageId, signal));

export const attemptsQuery = (messageId: string) =>
  read(messageKeys(messageId).attempts, (signal) => api.attempts(messageId, signal));

/** What depends on the state of a message is read again after a new attempt. */
const stateOf = ({ messageId, status, receiptTransactionHash }: Message) =>
  [messageId, status, receiptTransactionHash] as const;

export const diagnosisQuery = (message: Message) =>
  read(['diagnosis', ...stateOf(message)], (signal) => api.diagnosis(message.messageId, signal), {
    refetchOnWindowFocus: false,
  });

/** @param gasLimit digits, or empty: as sent */
export const manualExecutionQuery = (message: Message, gasLimit: string, isTyped: boolean) =>
  read(
    ['manual-execution', ...stateOf(message), gasLimit],
    async (signal) => {
      if (isTyped) await typingRests(signal, COSTLY_TYPING_MS);
      return api.manualExecution(message.messageId, gasLimit || undefined, signal);
    },
    { refetchOnWindowFocus: false },
  );

export interface LaneSelectors {
  readonly sourceChainSelector: string;
  readonly destChainSelector: string;
}

/** All lanes, or one. */
export const lanesQuery = (lane?: LaneSelectors) =>
  read(['lanes', lane ?? 'all'], (signal) => api.lanes({ ...lane }, signal), polled);

export const networksQuery = (onlyActive: boolean) =>
  read(
    ['networks', onlyActive],
    (signal) => api.networks(onlyActive ? { active: true } : {}, signal),
    polled,
  );

/** Health of indexers and mirrors. Polled often: no change event reports that one has stopped. */
export const freshnessQuery = read(
  ['networks', 'freshness'],
  (signal) => api.networks({ indexed: true }, signal),
  { refetchInterval: 10_000 },
);

export const statsQuery = (windowDays: number) =>
  read(['stats', windowDays], (signal) => api.stats({ windowDays }, signal), {
    ...polled,
    placeholderData: keepPreviousData,
  });

/** Failed messages by reason, of all lanes or of one. */
export const failuresQuery = (windowDays: number, lane?: LaneSelectors) =>
  read(
    ['failures', windowDays, lane ?? 'all'],
    (signal) => api.failures({ ...lane, windowDays }, signal),
    // Another window may stand in until the answer comes; another lane may not.
    { ...polled, ...(lane === undefined && { placeholderData: keepPreviousData }) },
  );

/** Why messages failed, by their ids. */
export const reasonsQuery = (messageIds: readonly string[]) =>
  read(['reasons', messageIds], (signal) => api.reasons(messageIds, signal), {
    enabled: messageIds.length > 0,
    placeholderData: keepPreviousData,
  });

/** Tokens of this address, on whatever networks. */
export const tokensQuery = (address: string) =>
  read(['tokens', address], (signal) => api.tokens([address], signal));

/** Debounces what depends on typed text: the query is aborted where typing goes on. */
async function typingRests(signal: AbortSignal, ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
  signal.throwIfAborted();
}

/** What the server knows by a text; an empty one is not asked for. */
export const lookupQuery = (text: string) =>
  read(
    ['lookup', text],
    async (signal) => {
      await typingRests(signal, TYPING_MS);
      return api.lookup(text, signal);
    },
    { enabled: text !== '', staleTime: 60_000, retry: false },
  );

/** What the page says itself: waiting for `readinessQuery`, a banner would move the page. */
export const isSimulatedPage = document.querySelector('meta[name="lanescan-simulated"]') !== null;

export const readinessQuery = read(['readiness'], (signal) => api.readiness({}, signal), {
  staleTime: Number.POSITIVE_INFINITY,
});

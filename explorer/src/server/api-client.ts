/**
 * The queries of all pages.
 *
 * While the server cannot be reached, a probe is sent every few seconds; when it is back, all queries are refetched.
 */
import { keepPreviousData, QueryClient, queryOptions } from '@tanstack/react-query';
import type { Message, MessagePage } from '../../../src/client/api-types.ts';
import { createClient, ResponseError } from '../../../src/client/client.ts';
import { basePath } from './base-path.ts';
import { setClock } from './clock.ts';
import { apiParameters, type SearchView, writeParameters } from './search-view.ts';
import { createStore } from './store.ts';

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

export const searchUrl = (view: SearchView) => `/v2/messages${writeParameters(apiParameters(view))}`;

export const searchQuery = (view: SearchView) =>
  queryOptions({
    queryKey: ['messages', apiParameters(view)],
    queryFn: ({ signal }) => api.search(apiParameters(view), signal),
    placeholderData: keepPreviousData,
    // Rows must not move under the pointer: new ones appear only when the user asks for them.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 300_000,
  });

/** Keys of what is read of a message by its id. */
export const messageKeys = (messageId: string) => {
  const id = messageId.toLowerCase();
  return { message: ['message', id], history: ['history', id], attempts: ['attempts', id] } as const;
};

export const messageQuery = (messageId: string) =>
  queryOptions({
    queryKey: messageKeys(messageId).message,
    queryFn: ({ signal }) => api.message(messageId, signal),
    // Coming from a list, the page shows the list's record until its own arrives.
    placeholderData: () =>
      queryClient
        .getQueriesData<MessagePage>({ queryKey: ['messages'] })
        .flatMap(([, page]) => page?.data ?? [])
        .find((message) => message.messageId === messageId.toLowerCase()),
  });

export const historyQuery = (messageId: string) =>
  queryOptions({
    queryKey: messageKeys(messageId).history,
    queryFn: ({ signal }) => api.history(messageId, signal),
  });

export const attemptsQuery = (messageId: string) =>
  queryOptions({
    queryKey: messageKeys(messageId).attempts,
    queryFn: ({ signal }) => api.attempts(messageId, signal),
  });

/** What depends on the state of a message is read again after a new attempt. */
const stateOf = ({ messageId, status, receiptTransactionHash }: Message) =>
  [messageId, status, receiptTransactionHash] as const;

export const diagnosisQuery = (message: Message) =>
  queryOptions({
    queryKey: ['diagnosis', ...stateOf(message)],
    queryFn: ({ signal }) => api.diagnosis(message.messageId, signal),
    refetchOnWindowFocus: false,
  });

/** @param gasLimit digits, or empty: as sent */
export const manualExecutionQuery = (message: Message, gasLimit: string, isTyped: boolean) =>
  queryOptions({
    queryKey: ['manual-execution', ...stateOf(message), gasLimit],
    queryFn: async ({ signal }) => {
      if (isTyped) await typingRests(signal, COSTLY_TYPING_MS);
      return api.manualExecution(message.messageId, gasLimit || undefined, signal);
    },
    refetchOnWindowFocus: false,
  });

export interface LaneSelectors {
  readonly sourceChainSelector: string;
  readonly destChainSelector: string;
}

/** All lanes, or one. */
export const lanesQuery = (lane?: LaneSelectors) =>
  queryOptions({
    queryKey: ['lanes', lane ?? 'all'],
    queryFn: ({ signal }) => api.lanes({ ...lane }, signal),
    refetchInterval: 30_000,
  });

export const networksQuery = (onlyActive: boolean) =>
  queryOptions({
    queryKey: ['networks', onlyActive],
    queryFn: ({ signal }) => api.networks(onlyActive ? { active: true } : {}, signal),
    refetchInterval: 30_000,
  });

/** Health of indexers and mirrors. Polled often: no change event reports that one has stopped. */
export const freshnessQuery = queryOptions({
  queryKey: ['networks', 'freshness'],
  queryFn: ({ signal }) => api.networks({ indexed: true }, signal),
  refetchInterval: 10_000,
});

export const statsQuery = (windowDays: number) =>
  queryOptions({
    queryKey: ['stats', windowDays],
    queryFn: ({ signal }) => api.stats({ windowDays }, signal),
    refetchInterval: 30_000,
    placeholderData: keepPreviousData,
  });

/** Failed messages by reason, of all lanes or of one. */
export const failuresQuery = (windowDays: number, lane?: LaneSelectors) =>
  queryOptions({
    queryKey: ['failures', windowDays, lane ?? 'all'],
    queryFn: ({ signal }) => api.failures({ ...lane, windowDays }, signal),
    refetchInterval: 30_000,
    // Another window may stand in until the answer comes; another lane may not.
    ...(lane === undefined && { placeholderData: keepPreviousData }),
  });

/** Why messages failed, by their ids. */
export const reasonsQuery = (messageIds: readonly string[]) =>
  queryOptions({
    queryKey: ['reasons', messageIds],
    queryFn: async ({ signal }) => {
      const reasons = await api.reasons(messageIds, signal);
      return new Map(reasons.map(({ messageId, reason }) => [messageId, reason]));
    },
    enabled: messageIds.length > 0,
    placeholderData: keepPreviousData,
  });

/** Tokens of this address, on whatever networks. */
export const tokensQuery = (address: string) =>
  queryOptions({
    queryKey: ['tokens', address],
    queryFn: ({ signal }) => api.tokens([address], signal),
  });

/** Debounces what depends on typed text: the query is aborted where typing goes on. */
async function typingRests(signal: AbortSignal, ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
  signal.throwIfAborted();
}

/** What the server knows by a text; an empty one is not asked for. */
export const lookupQuery = (text: string) =>
  queryOptions({
    queryKey: ['lookup', text],
    queryFn: async ({ signal }) => {
      await typingRests(signal, TYPING_MS);
      return api.lookup(text, signal);
    },
    enabled: text !== '',
    staleTime: 60_000,
    retry: false,
  });

/** What the page says itself: waiting for `readinessQuery`, a banner would move the page. */
export const isSimulatedPage = document.querySelector('meta[name="lanescan-simulated"]') !== null;

export const readinessQuery = queryOptions({
  queryKey: ['readiness'],
  queryFn: ({ signal }) => api.readiness({}, signal),
  staleTime: Number.POSITIVE_INFINITY,
});

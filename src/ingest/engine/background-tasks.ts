/** Background tasks of a network, one after the other, and the one that every family has: asking about its tokens. */
import type { BytesHex } from '../../domain/addresses.ts';
import type { TokenClaims } from '../../domain/names/tokens.ts';
import type { DueToken, IndexStep, TokenReading } from '../../store/ledger/index-ledger.ts';
import type { BackgroundTasks } from './family.ts';
import { NodeError } from './faults.ts';
import type { Progress } from './progress.ts';

/** As one step; the steps of the parts have no member in common. */
export function combineTasks(...all: readonly BackgroundTasks[]): BackgroundTasks {
  return {
    get isBehind() {
      return all.some(({ isBehind }) => isBehind);
    },
    async work() {
      const steps: IndexStep[] = [];
      for (const tasks of all) steps.push((await tasks.work()) ?? {});
      const step = Object.assign({}, ...steps) as IndexStep;
      return Object.keys(step).length === 0 ? undefined : step;
    },
  };
}

const TOKENS_AT_ONCE = 20;
const DAY_MS = 86_400_000;
/** Symbols and decimals are constants of nearly all contracts; some are proxies and can be renamed. */
const REFRESH_MS = 30 * DAY_MS;
/** A contract without any claim may be one that is not initialised yet. */
const EMPTY_REFRESH_MS = 7 * DAY_MS;
/** A request that fails again and again is repeated once a day at last. */
const LONGEST_PAUSE_MS = DAY_MS;

/**
 * Asks for symbol, name and decimals of tokens, once, and again after a month.
 *
 * A token is an untrusted contract: its answer can be too long for a response, or take an endpoint's whole time. So a request
 * that fails postpones its tokens and is no problem of the network. Tokens that failed once are asked about alone, one each
 * round: none can keep the others, or new blocks, waiting.
 *
 * @param read the claims of each token, in order
 */
export function createTokenTasks(
  { selector, ledger, timing }: Progress,
  read: (tokens: readonly BytesHex[]) => Promise<readonly TokenClaims[]>,
): BackgroundTasks {
  let isBehind = true;

  const ask = async (due: readonly DueToken[]): Promise<readonly TokenReading[]> => {
    if (due.length === 0) return [];
    try {
      const claims = await read(due.map(({ bytes }) => bytes));
      return due.map(({ bytes }, index) => readingOf(bytes, claims[index]));
    } catch (error) {
      if (!(error instanceof NodeError)) throw error;
      return due.map(({ bytes, attempts }) => ({
        bytes,
        claims: null,
        dueInMs: Math.min(LONGEST_PAUSE_MS, timing.taskMinMs * 2 ** Math.min(attempts, 30)),
      }));
    }
  };

  return {
    get isBehind() {
      return isBehind;
    },
    async work() {
      const hasMore = await ledger.tokens.discover();
      const fresh = await ledger.tokens.due(selector, 'fresh', TOKENS_AT_ONCE);
      const retried = await ledger.tokens.due(selector, 'retried', 1);
      isBehind = hasMore || fresh.length === TOKENS_AT_ONCE;
      const tokens = [...(await ask(fresh)), ...(await ask(retried))];
      // An empty step has the tasks go on at once where more of the history is to be searched.
      return tokens.length > 0 || hasMore ? { tokens } : undefined;
    },
  };
}

function readingOf(bytes: BytesHex, claims: TokenClaims | undefined): TokenReading {
  const known = claims ?? { symbol: null, name: null, decimals: null };
  const isEmpty = known.symbol === null && known.name === null && known.decimals === null;
  return { bytes, claims: known, dueInMs: isEmpty ? EMPTY_REFRESH_MS : REFRESH_MS };
}

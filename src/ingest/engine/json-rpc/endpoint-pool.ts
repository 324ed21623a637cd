/**
 * The endpoint pool of one network: work goes to the first healthy endpoint, or is shared out among all of them, with
 * failover to the next.
 *
 * An endpoint is healthy once it has identified itself, and until something fails on it. Then it is set back with
 * exponential backoff and returns by identifying itself again. While another one is healthy, no work waits for that.
 * A piece of work runs on one endpoint from beginning to end, so that all it reads comes from one view of the chain.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '../../../base/backoff.ts';
import type { WriteLog } from '../../../base/log.ts';
import { operatorProblems, type ProblemKind } from '../../../domain/networks/indexing-problem.ts';
import type { Network } from '../../../domain/networks/networks.ts';
import { NodeError, RequestRejectedError } from '../faults.ts';
import {
  createEndpoint,
  type Endpoint,
  EndpointError,
  type EndpointOptions,
  type EndpointTiming,
  usualTiming,
} from './endpoint.ts';
import type { ClassifyRpcError } from './rpc-error.ts';

/** What the pool needs of a node, whatever its family. */
export interface PooledNode {
  /** Whether it is a node of this network at all. Throws a NodeError where it is not. */
  checkIn(): Promise<unknown>;
  /** Asks for the head, which is reported through `onHead`. */
  head(): Promise<unknown>;
}

export interface PooledNodeOptions {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called with the height of every head that the node returns. */
  readonly onHead: (headBlock: number) => void;
  /** Called with what was learned of the endpoint. */
  readonly writeLog: WriteLog;
}

export interface EndpointHealth {
  readonly name: string;
  readonly healthy: boolean;
  /** Why it is not, for people. */
  readonly problem: string | null;
  readonly headBlock: number | null;
  readonly requests: number;
  readonly failures: number;
}

export interface EndpointPool<Node> {
  /**
   * Runs `work` on an endpoint whose head is at `minimumHead` or above. Where it throws a NodeError, or the endpoint
   * fails, the endpoint is set back and the next one gets the same work; the last error is thrown when none is left.
   *
   * @param avoided names of endpoints that do not get the work
   */
  run<T>(work: (node: Node) => Promise<T>, minimumHead?: number, avoided?: readonly string[]): Promise<T>;
  /** The same on the healthy endpoint with the least work under way, for work that all of them share. */
  share<T>(work: (node: Node) => Promise<T>, minimumHead?: number, avoided?: readonly string[]): Promise<T>;
  /**
   * Another healthy endpoint whose head is at `minimumHead` or above, where there is one: for a second opinion within
   * a piece of work.
   *
   * @param asked those that are not asked (again)
   */
  secondOpinion<T>(
    asked: Node | readonly Node[],
    work: (node: Node) => Promise<T>,
    minimumHead?: number,
  ): Promise<T | undefined>;
  /**
   * What the other healthy endpoints whose head is at `minimumHead` or above make of the work, one after the other, those
   * with the least work under way first. Each is asked when its opinion is.
   */
  opinions<T>(
    asked: Node | readonly Node[],
    work: (node: Node) => Promise<T>,
    minimumHead?: number,
  ): AsyncGenerator<T>;
  health(): readonly EndpointHealth[];
  /** Ends what is under way; nothing can be asked afterwards. */
  close(): void;
}

export interface EndpointPoolOptions extends Partial<Pick<EndpointOptions, 'signal' | 'now' | 'random'>> {
  readonly userAgent: string;
  /** Called when an endpoint is set back and when it returns. */
  readonly writeLog?: WriteLog;
  readonly timing?: Partial<EndpointTiming>;
}

/** How much of one failure a piece of work that succeeds makes up for. */
const FORGIVEN = 0.25;
const MAX_STRIKES = 12;
/** For an endpoint that answers but rejects a question: others come first, and it is soon asked for other things. */
const MAX_STRIKES_OF_RPC_ERRORS = 2;
/** How long the next endpoint is not asked because this one may yet answer. */
const HEAD_START_MS = 2_000;

export function createEndpointPool<Node extends PooledNode>(
  source: Pick<EndpointOptions, 'requestsPerSecond' | 'batchSize'> & {
    readonly network: Network;
    readonly rpc: readonly URL[];
  },
  classifyRpcError: ClassifyRpcError,
  createNode: (endpoint: Endpoint, options: PooledNodeOptions) => Node,
  options: EndpointPoolOptions,
): EndpointPool<Node> {
  const { requestsPerSecond, batchSize } = source;
  const network = source.network.name;
  const { userAgent, now = Date.now, random = Math.random, writeLog = () => undefined } = options;
  const timing = { ...usualTiming, ...options.timing };
  const ending = new AbortController();
  const { signal } = ending;
  const stop = () => ending.abort(options.signal?.reason);
  if (options.signal?.aborted) stop();
  options.signal?.addEventListener('abort', stop);

  const names = endpointNames(source.rpc);
  const members = source.rpc.map((url, index) => {
    const name = names[index] ?? url.host;
    const endpoint = createEndpoint({
      url,
      name,
      learned: (text) => writeLog(`${name}: ${text}`, { network }),
      requestsPerSecond,
      batchSize,
      userAgent,
      signal,
      now,
      random,
      timing,
      classifyRpcError,
    });
    const onHead = (headBlock: number) => {
      member.headBlock = headBlock;
      if (member.behind !== null && headBlock >= member.behind.minimumHead) member.behind = null;
    };
    const member = {
      endpoint,
      node: createNode(endpoint, { now, onHead, writeLog }),
      /** It has said who it is, and nothing has failed since. */
      isWell: false,
      /** On the clock of performance.now(). */
      restsUntil: 0,
      /** Failures that are not forgiven yet: each doubles the rest. */
      strikes: 0,
      failures: 0,
      /** Pieces of work under way. */
      load: 0,
      problem: null as string | null,
      problemKind: 'unknown' as ProblemKind,
      headBlock: null as number | null,
      /** When it was last found behind, and the head that was required. */
      behind: null as { readonly at: number; readonly minimumHead: number } | null,
      checkingIn: null as Promise<boolean> | null,
      /** Counts its failures, so that many pieces of work that fail at once are one. */
      era: 0,
    };
    return member;
  });
  type Member = (typeof members)[number];
  interface Choice {
    /** Those that do not get the work (again). */
    readonly tried: Set<Member>;
    /** Whether one that is slow to say who it is is waited for until its time is out. */
    readonly isNeeded: boolean;
    /** Whether the one with the least work comes first, and not the first that is configured. */
    readonly isShared: boolean;
  }

  const setBack = (member: Member, fault: NodeError, era: number, maxStrikes = MAX_STRIKES): void => {
    member.failures++;
    // Another piece of work has reported this failure before.
    if (member.era !== era) return;
    const wasWell = member.isWell || member.problem === null;
    member.era++;
    member.isWell = false;
    member.problem = fault.message;
    member.problemKind = fault.kind;
    member.strikes = Math.max(member.strikes, Math.min(member.strikes + 1, maxStrikes));
    const asked = fault instanceof EndpointError ? fault.restMs : undefined;
    const restMs = Math.min(asked ?? backoffMs(member.strikes, timing, random()), timing.longestRetryAfterMs);
    member.restsUntil = performance.now() + restMs;
    if (wasWell) {
      const level = operatorProblems.has(fault.kind) ? 'error' : 'warn';
      writeLog(`${fault.message}; set back for ${(restMs / 1000).toFixed(1)} s`, { level, network });
    }
  };

  /** Resolves to whether it is well. Never rejects, except when everything ends. */
  const checkIn = (member: Member): Promise<boolean> => {
    const { era } = member;
    const check = async () => {
      try {
        await member.node.checkIn();
        if (member.era !== era) return false;
        if (member.problem !== null) writeLog(`${member.endpoint.name} is back`, { network });
        member.isWell = true;
        member.problem = null;
        return true;
      } catch (error) {
        if (!(error instanceof NodeError)) throw error;
        setBack(member, error, era);
        return false;
      } finally {
        member.checkingIn = null;
      }
    };
    member.checkingIn ??= check();
    return member.checkingIn;
  };

  /** In the background. Its failures are reported by the next piece of work. */
  const startCheckingIn = (member: Member): void => {
    if (performance.now() >= member.restsUntil) checkIn(member).catch(() => undefined);
  };

  /** Whether its head is at `minimumHead` or above; asks again where its last known head is lower. */
  const isFarEnough = async (member: Member, minimumHead: number | undefined): Promise<boolean> => {
    if (minimumHead === undefined || (member.headBlock ?? -1) >= minimumHead) return true;
    const isKnown = member.behind !== null && performance.now() - member.behind.at < timing.firstPauseMs;
    if (!isKnown) {
      const { era } = member;
      try {
        await member.node.head();
      } catch (error) {
        if (!(error instanceof NodeError)) throw error;
        setBack(member, error, era);
        return false;
      }
    }
    if ((member.headBlock ?? -1) >= minimumHead) return true;
    member.behind = { at: isKnown ? (member.behind?.at ?? 0) : performance.now(), minimumHead };
    return false;
  };

  const problemOf = (member: Member): string | null =>
    member.problem ??
    (member.behind === null
      ? null
      : `${member.endpoint.name}: its head ${member.headBlock} is behind block ${member.behind.minimumHead}`);

  /**
   * The first that is well and far enough among those that were not tried yet; one more piece of work is then counted as
   * under way on it.
   */
  const nextWell = async (minimumHead: number | undefined, choice: Choice): Promise<Member | undefined> => {
    const { tried, isNeeded, isShared } = choice;
    /** Counted before anything is waited for: of many who choose at once, each sees what the others chose. */
    const claim = async (member: Member): Promise<boolean> => {
      member.load++;
      let isClaimed = false;
      try {
        isClaimed = await isFarEnough(member, minimumHead);
      } finally {
        if (!isClaimed) member.load--;
      }
      return isClaimed;
    };
    if (isShared) for (const member of members) if (!member.isWell) startCheckingIn(member);
    const inTurn = isShared ? members.toSorted((one, other) => one.load - other.load) : members;
    for (const member of inTurn) {
      if (tried.has(member)) continue;
      if (!member.isWell) startCheckingIn(member);
      else if (await claim(member)) return member;
    }
    // None is well: give those that are saying who they are for the first time a moment, in their order.
    for (const member of members) {
      if (tried.has(member)) continue;
      if (!member.isWell && member.problem === null && member.checkingIn !== null)
        await Promise.race([member.checkingIn, delay(HEAD_START_MS, false, { signal, ref: false })]);
      if (member.isWell && (await claim(member))) return member;
    }
    if (!isNeeded) return undefined;
    const slow = members.filter((member) => !tried.has(member) && member.checkingIn !== null);
    const answers = slow.map(async (member) => {
      if ((await member.checkingIn) && (await isFarEnough(member, minimumHead))) return member;
      throw new Error('not this one');
    });
    const first = await Promise.any(answers).catch(() => undefined);
    if (first) first.load++;
    return first;
  };

  /** Waits for the rest of an endpoint that returns soon; false where none does. */
  const waitForOne = async (): Promise<boolean> => {
    if (members.some(({ isWell }) => isWell)) return false;
    const soonest = Math.min(...members.map(({ restsUntil }) => restsUntil));
    if (soonest - performance.now() > timing.maxWaitMs) return false;
    // A timer may fire somewhat early.
    for (let left = soonest - performance.now(); left > 0; left = soonest - performance.now())
      await delay(Math.ceil(left), undefined, { signal });
    return true;
  };

  /** Ends with one piece of work less under way. */
  const attempt = async <T>(member: Member, work: (node: Node) => Promise<T>): Promise<T> => {
    const { era } = member;
    try {
      const result = await work(member.node);
      member.strikes = Math.max(0, member.strikes - FORGIVEN);
      return result;
    } catch (error) {
      signal.throwIfAborted();
      const maxStrikes = error instanceof RequestRejectedError ? MAX_STRIKES_OF_RPC_ERRORS : MAX_STRIKES;
      if (error instanceof NodeError) setBack(member, error, era, maxStrikes);
      throw error;
    } finally {
      member.load--;
    }
  };

  /** Tries one endpoint after the other until the work is done, or all have been tried. */
  const offer = async <T>(
    work: (node: Node) => Promise<T>,
    minimumHead: number | undefined,
    choice: Choice,
  ): Promise<{ readonly result: T } | { readonly fault: NodeError | undefined }> => {
    let fault: NodeError | undefined;
    for (;;) {
      signal.throwIfAborted();
      const member = await nextWell(minimumHead, choice);
      signal.throwIfAborted();
      if (member === undefined) return { fault };
      choice.tried.add(member);
      try {
        return { result: await attempt(member, work) };
      } catch (error) {
        if (!(error instanceof NodeError)) throw error;
        fault = error;
      }
    }
  };

  const runOnOne = async <T>(
    work: (node: Node) => Promise<T>,
    minimumHead: number | undefined,
    avoided: readonly string[],
    isShared: boolean,
  ): Promise<T> => {
    const tried = new Set(members.filter(({ endpoint }) => avoided.includes(endpoint.name)));
    const asNeeded = { tried, isNeeded: true, isShared };
    let outcome = await offer(work, minimumHead, asNeeded);
    const foundNone = 'fault' in outcome && outcome.fault === undefined;
    if (foundNone && (await waitForOne())) outcome = await offer(work, minimumHead, asNeeded);
    if ('result' in outcome) return outcome.result;
    if (outcome.fault !== undefined) throw outcome.fault;
    const troubled = members.find((member) => problemOf(member) !== null);
    if (!troubled) throw new NodeError('no endpoint', 'unreachable');
    const kind = troubled.problem === null ? 'behind' : troubled.problemKind;
    throw new NodeError(problemOf(troubled) ?? 'no endpoint', kind);
  };

  const membersOf = (nodes: Node | readonly Node[]): Set<Member> => {
    const wanted = new Set([nodes].flat());
    return new Set(members.filter(({ node }) => wanted.has(node)));
  };

  return {
    run: (work, minimumHead, avoided = []) => runOnOne(work, minimumHead, avoided, false),
    share: (work, minimumHead, avoided = []) => runOnOne(work, minimumHead, avoided, true),

    async secondOpinion(asked, work, minimumHead) {
      const tried = membersOf(asked);
      const outcome = await offer(work, minimumHead, { tried, isNeeded: false, isShared: false });
      return 'result' in outcome ? outcome.result : undefined;
    },

    async *opinions(asked, work, minimumHead) {
      const tried = membersOf(asked);
      for (;;) {
        const outcome = await offer(work, minimumHead, { tried, isNeeded: false, isShared: true });
        if (!('result' in outcome)) return;
        yield outcome.result;
      }
    },

    health: () =>
      members.map((member) => {
        const problem = problemOf(member);
        return {
          name: member.endpoint.name,
          healthy: problem === null,
          problem,
          headBlock: member.headBlock,
          requests: member.endpoint.requests,
          failures: member.failures,
        };
      }),

    close() {
      options.signal?.removeEventListener('abort', stop);
      ending.abort(new Error(`The connections to ${network} are closed.`));
    },
  };
}

/** Hosts, and a number behind those that come twice. */
export function endpointNames(urls: readonly URL[]): readonly string[] {
  return urls.map(({ host }, index) => {
    const earlier = urls.slice(0, index).filter((other) => other.host === host).length;
    return earlier === 0 ? host : `${host} (${earlier + 1})`;
  });
}

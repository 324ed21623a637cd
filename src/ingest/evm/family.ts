/** The EVM family: CCIP 1.2 to 2.0, read from logs over JSON-RPC. */
import type { BlockId, IndexState } from '../../store/ledger/index-ledger.ts';
import { combineTasks } from '../engine/background-tasks.ts';
import { createConfirmation } from '../engine/confirmation.ts';
import { createContractRegistry } from '../engine/contract-registry.ts';
import type { ChainFamily, ConnectOptions, NetworkReader, NetworkStart } from '../engine/family.ts';
import { NodeError } from '../engine/faults.ts';
import { createProgress } from '../engine/progress.ts';
import { createTokenTasks } from '../engine/token-tasks.ts';
import { createAgreement } from './agreement.ts';
import { createBloomTrust } from './bloom-trust.ts';
import { createConsistencyCheck } from './checks/consistency-check.ts';
import { createExecutedMessages } from './checks/executed-messages.ts';
import { createRegistryLog, unknownRegistrations } from './checks/registry-log.ts';
import { createUnconfirmedBlocks } from './checks/unconfirmed-blocks.ts';
import { createLogConfirmation } from './confirmation.ts';
import { findDeployment } from './contracts/deployment.ts';
import { probeNetwork } from './contracts/network-probe.ts';
import { createDecoder } from './decode/decoder.ts';
import { openEvmCalls } from './destination-calls.ts';
import { createHeadFollower } from './head-follower.ts';
import { createHistoryReader } from './history-reader.ts';
import { createMessageTasks } from './message-tasks.ts';
import { createBlockReader, type EvmContractRegistry } from './reading.ts';
import type { Block, Chain, ChainNode, Hex } from './rpc/chain.ts';
import { createChain } from './rpc/endpoints.ts';
import type { EvmSource } from './settings.ts';
import { startBlockOf } from './start-block.ts';
import { readTokenClaims } from './token-claims.ts';
import { createVerifierResults } from './verifier-results.ts';

export const evmFamily: ChainFamily<EvmSource> = {
  connect,
  probe: probeNetwork,
  openCalls: openEvmCalls,
};

function connect(source: EvmSource, options: ConnectOptions): NetworkReader {
  const { store, endpointTiming, userAgent, signal } = options;
  const { timing, writeLog } = options.progress;
  const { network, routers } = source;
  const chain = createChain(source, {
    userAgent,
    signal,
    writeLog,
    ...(endpointTiming && { timing: endpointTiming }),
  });
  // A blessing names a commit store. Blessings of a commit store that was not known were passed over, so that the RMN
  // contracts have to be read again together with a new contract.
  const registry: EvmContractRegistry = createContractRegistry(({ role }) => role === 'rmn');
  const progress = createProgress(options.progress, registry);
  const { selector } = network;
  const registryLog = createRegistryLog(progress);
  const bloomTrust = createBloomTrust(source.verify, registryLog);
  const decoder = createDecoder(network);
  const unconfirmed = createUnconfirmedBlocks({
    selector,
    chain,
    ledger: store.index.checks,
    progress,
    registry,
    decoder,
    timing,
    recheck: () => check.recheck(),
  });
  const confirmLogs = createLogConfirmation(
    createConfirmation({ chain, waitMs: timing.secondOpinionMs, signal }),
    (witness, blocks) => unconfirmed.note(witness, blocks),
  );
  const reader = createBlockReader(chain, registry, decoder, registryLog, bloomTrust, confirmLogs);
  const agreement = createAgreement({
    chain,
    acceptsDeepReorgs: source.acceptDeepReorgs === true,
    waitMs: timing.secondOpinionMs,
    log: progress.log,
  });
  const follower = createHeadFollower({
    selector,
    chain,
    agreement,
    settleEveryMs: timing.settleEveryMs,
    ledger: store.index,
    reader,
    progress,
  });
  const check = createConsistencyCheck({
    selector,
    routers,
    hasStart: source.start !== null,
    chain,
    ledger: store.index.checks,
    progress,
    registry,
    bloomTrust,
    unconfirmed,
    readExecuted: createExecutedMessages({ selector, chain, store, registry }),
  });
  const historyChain: Chain = {
    ...chain,
    share: (work, minimumHead) => chain.share(work, minimumHead, check.avoidedEndpoints()),
  };
  const history = createHistoryReader({ source, chain: historyChain, reader, progress });
  const results =
    source.verifierResults && createVerifierResults(source.verifierResults, { userAgent, signal });

  let startBlock: IndexState['startBlock'] = null;
  let lacksAttempts = false;
  const offRamps = () =>
    [...registry.contracts.values()].filter(({ role }) => role === 'offRamp').map(({ address }) => address);

  const startOfNode = async (
    node: ChainNode,
    hasNewRouters: boolean,
  ): Promise<Pick<NetworkStart, 'final' | 'start' | 'deployed'>> => {
    const { head, final } = await node.tips();
    const start = await startBlockOf(node, source.start, head);
    const isEarlier = start !== undefined && startBlock !== null && start < startBlock;
    const isSearched = source.deployed === undefined && (hasNewRouters || isEarlier);
    const deployed = isSearched ? await confirmedDeployment(chain, node, routers, head) : source.deployed;
    return { final: await firstFinal(node, final), start, deployed };
  };

  /** Everything else builds on the first block that is recorded. */
  const firstFinal = async (node: ChainNode, final: BlockId): Promise<BlockId> => {
    if (progress.head.tip) return final;
    const agreed = await agreement.on(node, final, final, () => true);
    if ('reason' in agreed) throw new NodeError(agreed.reason);
    return agreed.final;
  };

  return {
    progress,
    load(state) {
      registry.load(state.contracts, routers);
      startBlock = state.startBlock;
      lacksAttempts = state.lacksAttempts;
    },

    async readStart() {
      const unknown = unknownRegistrations(await store.index.checks.findings(selector));
      const newRouters = routers.filter((router) => !registry.contracts.has(router));
      return chain.run(async (node) => {
        const noContracts = { contracts: [], rejected: [] };
        const [{ final, start, deployed }, current, again] = await Promise.all([
          startOfNode(node, newRouters.length > 0),
          newRouters.length > 0 ? reader.readCurrent(node, newRouters) : noContracts,
          reader.identifyAgain(node, unknown),
        ]);
        return {
          final,
          start,
          deployed,
          newRouters,
          contracts: [...current.contracts, ...again.contracts],
          rejected: [...current.rejected, ...again.rejected],
          readAgain: lacksAttempts ? offRamps() : [],
        };
      });
    },

    follow: () => follower.follow(),
    nextPiece: (pending) => history.nextPiece(pending),
    readHistory: (range, extent) => history.read(range, extent),
    tasks: combineTasks(
      createMessageTasks({ selector, chain, store, progress, registry, results, timing }),
      unconfirmed,
      check,
      createTokenTasks({
        selector,
        ledger: store.index,
        read: (tokens) => chain.run((node) => readTokenClaims(node, tokens), progress.head.tip?.number ?? 0),
        timing,
      }),
    ),
    health: () => chain.health(),
    close: () => chain.close(),
  };
}

/**
 * The block below which there is no history; undefined where no endpoint has the state of old blocks, or two of them
 * contradict each other.
 */
async function confirmedDeployment(
  chain: Chain,
  node: ChainNode,
  routers: readonly Hex[],
  head: Block,
): Promise<number | undefined> {
  const deployed = await findDeployment(node, routers, head.number);
  if (deployed === undefined)
    return chain.secondOpinion(node, (other) => findDeployment(other, routers, head.number));
  const questions = routers.map((address) => ({ address, has: 'code' as const, block: deployed - 1 }));
  const second = await chain.secondOpinion(node, (other) => other.accounts(questions));
  return second?.includes(true) ? undefined : deployed;
}

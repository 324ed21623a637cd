/** The EVM family: CCIP 1.2 to 2.0, read from logs over JSON-RPC. */
import type { BlockId, IndexState } from '../../store/ledger/index-ledger.ts';
import { combineTasks, createTokenTasks } from '../engine/background-tasks.ts';
import { createConfirmation } from '../engine/confirmation.ts';
import { createContractRegistry } from '../engine/contract-registry.ts';
import type { ChainFamily, ConnectOptions, NetworkReader } from '../engine/family.ts';
import { NodeError } from '../engine/faults.ts';
import { createProgress } from '../engine/progress.ts';
import { createAgreement } from './agreement.ts';
import { createBloomTrust } from './bloom.ts';
import { createConsistencyCheck } from './checks/consistency-check.ts';
import { createExecutedMessages } from './checks/executed-messages.ts';
import { createRegistryLog, unknownRegistrations } from './checks/registry-log.ts';
import { createUnconfirmedBlocks } from './checks/unconfirmed-blocks.ts';
import { createDecoder } from './decode/decoder.ts';
import { openEvmCalls } from './destination-calls.ts';
import { createHeadFollower } from './head-follower.ts';
import { createHistoryReader } from './history-reader.ts';
import { confirmedDeployment, startBlockOf } from './history-start.ts';
import { createMessageTasks } from './message-tasks.ts';
import { probeNetwork } from './network-probe.ts';
import { createBlockReader, createLogConfirmation, type EvmContractRegistry } from './reading.ts';
import type { ChainNode } from './rpc/chain.ts';
import { createChain } from './rpc/node.ts';
import type { EvmSource } from './settings.ts';
import { readTokenClaims } from './token-claims.ts';
import { createVerifierResults } from './verifier-results.ts';

export const evmFamily: ChainFamily<EvmSource> = { connect, probe: probeNetwork, openCalls: openEvmCalls };

function connect(source: EvmSource, options: ConnectOptions): NetworkReader {
  const { store, endpointTiming = {}, userAgent, signal } = options;
  const { timing, writeLog } = options.progress;
  const { network, routers } = source;
  const chain = createChain(source, { userAgent, signal, writeLog, timing: endpointTiming });
  // A blessing names a commit store. Blessings of a commit store that was not known were passed over, so that the RMN
  // contracts have to be read again together with a new contract.
  const registry: EvmContractRegistry = createContractRegistry(({ role }) => role === 'rmn');
  const progress = createProgress(options.progress, registry);
  const registryLog = createRegistryLog(progress);
  const bloomTrust = createBloomTrust(source.verify, registryLog);
  const decoder = createDecoder(network);
  const unconfirmed = createUnconfirmedBlocks(progress, chain, registry, decoder, () => check.recheck());
  const confirmation = createConfirmation({ chain, waitMs: timing.secondOpinionMs, signal });
  const confirmLogs = createLogConfirmation(confirmation, unconfirmed.note);
  const reader = createBlockReader(chain, registry, decoder, registryLog, bloomTrust, confirmLogs);
  const agreement = createAgreement(progress, chain, source.acceptDeepReorgs === true);
  const readExecuted = createExecutedMessages(progress, chain, registry, store.findMessage);
  const check = createConsistencyCheck(
    source,
    progress,
    chain,
    registry,
    bloomTrust,
    unconfirmed,
    readExecuted,
  );
  const history = createHistoryReader(source, progress, chain, reader, check.avoidedEndpoints);
  const results =
    source.verifierResults && createVerifierResults(source.verifierResults, { userAgent, signal });

  let startBlock: IndexState['startBlock'] = null;
  let lacksAttempts = false;
  const offRamps = () =>
    [...registry.contracts.values()].filter(({ role }) => role === 'offRamp').map(({ address }) => address);

  const startOfNode = async (node: ChainNode, hasNewRouters: boolean) => {
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
      const unknown = unknownRegistrations(await store.index.checks.findings(network.selector));
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

    follow: createHeadFollower(progress, chain, agreement, reader),
    ...history,
    tasks: combineTasks(
      createMessageTasks(progress, chain, registry, store.findMessage, results),
      unconfirmed,
      check,
      createTokenTasks(progress, (tokens) =>
        chain.run((node) => readTokenClaims(node, tokens), progress.head.tip?.number ?? 0),
      ),
    ),
    health: chain.health,
    close: chain.close,
  };
}

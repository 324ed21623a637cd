/** The progress of one network, which the loops of its worker and its chain family share: each part has one owner. */
import type { LogLineLevel, WriteLog } from '../../base/log.ts';
import type { Network } from '../../domain/networks/networks.ts';
import type { IndexLedger } from '../../store/ledger/index-ledger.ts';
import { type ChainHead, createChainHead } from './chain-head.ts';
import type { ContractRegistry } from './contract-registry.ts';
import { createNetworkProblem, type NetworkProblem } from './network-problem.ts';
import { createRecorder, type Recorder } from './recorder.ts';
import type { WorkerTiming } from './timing.ts';

export interface ProgressOptions {
  readonly network: Network;
  readonly ledger: IndexLedger;
  /** Who holds the network's lease. */
  readonly holder: string;
  readonly timing: WorkerTiming;
  readonly writeLog: WriteLog;
}

export interface Progress {
  readonly head: ChainHead;
  readonly registry: ContractRegistry;
  readonly recorder: Recorder;
  /** What keeps the network from progress. */
  readonly problem: NetworkProblem;
  log(line: string, level?: LogLineLevel): void;
}

/** @param registry of the chain family, which knows what the contracts are */
export function createProgress(options: ProgressOptions, registry: ContractRegistry): Progress {
  const { network, ledger, holder, timing, writeLog } = options;
  const { selector } = network;
  const log: Progress['log'] = (line, level = 'info') => writeLog(line, { level, network: network.name });
  const problem = createNetworkProblem({ escalateAfterMs: timing.escalateAfterMs, log });
  const head = createChainHead(selector);
  const recorder = createRecorder({ selector, ledger, holder, timing, head, registry, problem });
  return { head, registry, recorder, problem, log };
}

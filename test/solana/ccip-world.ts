/**
 * A virtual Solana cluster with CCIP's programs and lanes to other chains. A test has it send, commit, execute, forge and
 * make noise. It updates the programs' accounts accordingly and records what truly happened.
 *
 * @example
 * const world = createSolanaWorld();
 * world.send({ data: '0x1234', tokens: [5n] });
 * const message = world.receive();
 * const commit = world.commit([message]);
 * world.execute(message, { outcome: 'failure' });
 * world.settle();
 */
import { commitCall, forgeries } from './ccip-calls.ts';
import { type CcipDeployment, createCcipDeployment, dapp, selectorOf } from './ccip-deployment.ts';
import { ccipMessageSent, commitReportAccepted } from './ccip-events.ts';
import { FINALITY_SLOTS } from './endpoint/node.ts';
import { addressOf, fromHex } from './runtime/bytes.ts';
import type { LedgerTransaction } from './runtime/ledger.ts';
import { customFailure } from './runtime/runtime.ts';
import { type ForgeryKind, type SolanaWorldOptions, sepolia, solanaDevnet } from './world-options.ts';
import { createReceiving } from './world-receiving.ts';
import { createSending } from './world-sending.ts';

export type SolanaWorld = ReturnType<typeof createSolanaWorld>;

/** Beyond finality, so that nodes that are a little behind have everything too. */
const SETTLING_SLOTS = 40;

export function createSolanaWorld(options: SolanaWorldOptions = {}) {
  const { network = solanaDevnet, remotes = [sepolia], isRelaying = true } = options;
  const deployment = createCcipDeployment(options);
  const { cluster, programs, land } = deployment;
  const sending = createSending(deployment, { isRelaying });
  const { sends, send, bodyOf, bumpVersion, rollBackVersion } = sending;
  const { commits, executions, ...arrivals } = createReceiving(deployment, remotes);
  return {
    network,
    cluster,
    programs,
    remotes,
    truth: { sends, commits, executions },
    send,
    bodyOf,
    bumpVersion,
    rollBackVersion,
    ...arrivals,
    /** Something that looks like a message or a commit and is not. */
    forge: (kind: ForgeryKind) => forge(deployment, sending, kind),
    /** A transaction that names the router and does nothing. */
    makeNoise: () =>
      land({ program: dapp, accounts: [{ address: programs.router }], data: new Uint8Array([1]) }),
    /** Lets slots pass until everything is final. */
    settle: () => cluster.grow(FINALITY_SLOTS + SETTLING_SLOTS),
  };
}

const forger = addressOf('forger');
const forgerWallet = addressOf('wallet of the forger');
const paidByForger = { feePayer: forgerWallet };

function forge(
  { programs, usual, laneOf, land }: CcipDeployment,
  { bodyOf, callOf }: ReturnType<typeof createSending>,
  kind: ForgeryKind,
): LedgerTransaction {
  const { offRamp } = programs;
  const body = bodyOf({ data: '0xbad0', sender: forgerWallet }, usual);
  const encoded = ccipMessageSent(body);
  const root = {
    sourceChainSelector: selectorOf(usual),
    onRampAddress: fromHex(usual.onRamp),
    minSeqNr: laneOf(usual).nextToCommit,
    maxSeqNr: laneOf(usual).nextToCommit,
    merkleRoot: new Uint8Array(32).fill(0xbd),
  };
  switch (kind) {
    case 'failed send':
      return land(callOf(body, customFailure(7_001)), paidByForger);
    case 'failed commit': {
      const failure = customFailure(9_002);
      return land(
        commitCall({ programs, transmitter: forgerWallet, root, prices: [], number: 0n, failure }),
        paidByForger,
      );
    }
    case 'commit of another program': {
      const steps = [{ data: commitReportAccepted(root, []) }];
      return land({ program: forger, accounts: [{ address: offRamp }], steps }, paidByForger);
    }
    default:
      return land(forgeries(forger, programs, encoded)[kind], paidByForger);
  }
}

/** Transactions of a world that look like a message or a commit and are neither. */

import { commitCall, forgeries } from './ccip-calls.ts';
import { type CcipDeployment, selectorOf } from './ccip-deployment.ts';
import { ccipMessageSent, commitReportAccepted } from './ccip-events.ts';
import { fromHex } from './runtime/bytes.ts';
import type { LedgerTransaction } from './runtime/ledger.ts';
import { addressOf } from './runtime/program-address.ts';
import { customFailure } from './runtime/runtime.ts';
import type { ForgeryKind } from './world-options.ts';
import type { Sending } from './world-sending.ts';

const forger = addressOf('forger');
const forgerWallet = addressOf('wallet of the forger');
const paidByForger = { feePayer: forgerWallet };

export function forge(
  { programs, usual, laneOf, land }: CcipDeployment,
  { bodyOf, callOf }: Pick<Sending, 'bodyOf' | 'callOf'>,
  kind: ForgeryKind,
): LedgerTransaction {
  const { router, offRamp, rmnRemote } = programs;
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
      return land(forgeries[kind]({ forger, router, encoded }, rmnRemote), paidByForger);
  }
}

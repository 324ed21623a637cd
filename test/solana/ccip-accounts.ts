/** Accounts of CCIP's Solana programs: their addresses, and their bytes. */

import { discriminator } from './ccip-events.ts';
import { bool, concat, i64, pubkey, sized, string, u8, u32, u64, u128 } from './runtime/bytes.ts';
import { programAddress } from './runtime/program-address.ts';

export interface CcipPrograms {
  readonly router: string;
  readonly offRamp: string;
  readonly feeQuoter: string;
  readonly rmnRemote: string;
}

/** Where the mainnet and devnet programs are. */
export const deployedPrograms: CcipPrograms = {
  router: 'Ccip842gzYHhvdDkSyi2YVCoAWPbYJoApMFzSxQroE9C',
  offRamp: 'offqSMQWgQud6WJz694LRzkeN5kMYpCHTpXQr3Rkcjm',
  feeQuoter: 'FeeQPGkKDeRV1MgoYfMH6L8o3KeuYjwUZrgn4LRKfjHi',
  rmnRemote: 'RmnXLft1mSEwDgMKu2okYuHkiazxntFFcZFrrcXxYg7',
};

export const routerAddresses = {
  config: (router: string) => programAddress(router, 'config'),
  feeBillingSigner: (router: string) => programAddress(router, 'fee_billing_signer'),
  destChainState: (router: string, selector: bigint) =>
    programAddress(router, 'dest_chain_state', u64(selector)),
  nonce: (router: string, selector: bigint, sender: string) =>
    programAddress(router, 'nonce', u64(selector), pubkey(sender)),
  allowedOffRamp: (router: string, selector: bigint, offRamp: string) =>
    programAddress(router, 'allowed_offramp', u64(selector), pubkey(offRamp)),
  tokenAdminRegistry: (router: string, mint: string) =>
    programAddress(router, 'token_admin_registry', pubkey(mint)),
};

export const offRampAddresses = {
  config: (offRamp: string) => programAddress(offRamp, 'config'),
  referenceAddresses: (offRamp: string) => programAddress(offRamp, 'reference_addresses'),
  feeBillingSigner: (offRamp: string) => programAddress(offRamp, 'fee_billing_signer'),
  sourceChainState: (offRamp: string, selector: bigint) =>
    programAddress(offRamp, 'source_chain_state', u64(selector)),
  commitReport: (offRamp: string, selector: bigint, root: Uint8Array) =>
    programAddress(offRamp, 'commit_report', u64(selector), sized(root, 32)),
  externalExecutionConfig: (offRamp: string, receiver: string) =>
    programAddress(offRamp, 'external_execution_config', pubkey(receiver)),
};

export const feeQuoterAddresses = {
  destChain: (feeQuoter: string, selector: bigint) => programAddress(feeQuoter, 'dest_chain', u64(selector)),
};

export const rmnAddresses = {
  config: (rmnRemote: string) => programAddress(rmnRemote, 'config'),
  curses: (rmnRemote: string) => programAddress(rmnRemote, 'curses'),
};

/** The account of a pool that messages name as `sourcePoolAddress`. */
export const poolConfigAddress = (poolProgram: string, mint: string) =>
  programAddress(poolProgram, 'ccip_tokenpool_config', pubkey(mint));

const account = (name: string, ...fields: readonly Uint8Array[]) =>
  concat(discriminator('account', name), ...fields);
const none = new Uint8Array(32);

export function routerConfig({
  programs,
  selector,
  linkTokenMint,
  owner,
}: {
  readonly programs: CcipPrograms;
  readonly selector: bigint;
  readonly linkTokenMint: string;
  readonly owner: string;
}): Uint8Array {
  return account(
    'Config',
    u8(1),
    u8(1),
    u64(selector),
    pubkey(owner),
    none,
    pubkey(programs.feeQuoter),
    pubkey(programs.rmnRemote),
    pubkey(linkTokenMint),
    pubkey(owner),
  );
}

export interface DestChain {
  readonly selector: bigint;
  /** The last number that was given. */
  readonly sequenceNumber: bigint;
  /** The number of the version that was left, and with which change of version it comes back. */
  readonly restore?: { readonly number: bigint; readonly on: 'upgrade' | 'rollback' } | undefined;
}

const restoreActions = { none: 0, upgrade: 1, rollback: 2 } as const;

/** A lane of the router, with an empty list of allowed senders. */
export function destChainAccount({ selector, sequenceNumber, restore }: DestChain): Uint8Array {
  return account(
    'DestChain',
    u8(1),
    u64(selector),
    u64(sequenceNumber),
    u64(restore?.number ?? 0n),
    u8(restoreActions[restore?.on ?? 'none']),
    u8(1),
    u32(0),
    bool(false),
  );
}

export const allowedOffRampAccount = (): Uint8Array => account('AllowedOfframp');

/** A zero-copy account: fields are aligned as in memory. */
export function offRampConfig(
  selector: bigint,
  enableManualExecutionAfterSeconds: bigint,
  owner: string,
): Uint8Array {
  const ocrConfigs = new Uint8Array(1_000);
  return account(
    'Config',
    u8(1),
    u8(1),
    new Uint8Array(6),
    u64(selector),
    i64(enableManualExecutionAfterSeconds),
    new Uint8Array(8),
    pubkey(owner),
    none,
    ocrConfigs,
  );
}

export function referenceAddressesAccount(programs: CcipPrograms, lookupTable: string): Uint8Array {
  return account(
    'ReferenceAddresses',
    u8(1),
    pubkey(programs.router),
    pubkey(programs.feeQuoter),
    pubkey(lookupTable),
    pubkey(programs.rmnRemote),
  );
}

export interface SourceChain {
  readonly selector: bigint;
  /** The next number to commit. */
  readonly minSeqNr: bigint;
  readonly onRamp: Uint8Array;
}

export function sourceChainAccount({ selector, minSeqNr, onRamp }: SourceChain): Uint8Array {
  const padded = new Uint8Array(64);
  padded.set(onRamp);
  return account(
    'SourceChain',
    u8(1),
    u64(selector),
    u64(minSeqNr),
    bool(true),
    bool(true),
    u8(1),
    padded,
    u32(onRamp.length),
  );
}

export interface CommitReport {
  readonly selector: bigint;
  readonly merkleRoot: Uint8Array;
  /** Seconds since 1970. */
  readonly timestamp: bigint;
  readonly minMsgNr: bigint;
  readonly maxMsgNr: bigint;
  /** Two bits a message, counted from the first. */
  readonly executionStates: bigint;
}

export function commitReportAccount(report: CommitReport): Uint8Array {
  return account(
    'CommitReport',
    u8(1),
    u64(report.selector),
    sized(report.merkleRoot, 32),
    i64(report.timestamp),
    u64(report.minMsgNr),
    u64(report.maxMsgNr),
    u128(report.executionStates),
  );
}

/** The start of a pool's account, up to what names the token, and its router. */
export function poolState({
  mint,
  router,
  poolProgram,
  tokenProgram,
}: {
  readonly mint: string;
  readonly router: string;
  readonly poolProgram: string;
  readonly tokenProgram: string;
}): Uint8Array {
  const signer = programAddress(poolProgram, 'ccip_tokenpool_signer', pubkey(mint));
  const head = account(
    'State',
    u8(1),
    pubkey(tokenProgram),
    pubkey(mint),
    u8(9),
    pubkey(signer),
    pubkey(signer),
  );
  // Owner, proposed owner, rate-limit administrator and router authority lie between, up to byte 266.
  const between = new Uint8Array(266 - head.length);
  return concat(head, between, pubkey(router), new Uint8Array(70));
}

/** What `type_version` returns. */
export const versionText = (text: string): Uint8Array => string(text);

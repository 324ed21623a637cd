/** Accounts of CCIP's Solana programs: their addresses, and their bytes. */
import { deriveAddress, programAddresses } from '../../src/ingest/svm/program-addresses.ts';
import { discriminator } from './ccip-events.ts';
import { bool, concat, i64, pubkey, sized, toHex, u8, u32, u64, u128 } from './runtime/bytes.ts';
import type { TrueCommit } from './world-options.ts';

/** Where the mainnet and devnet programs are. */
export const deployedPrograms = {
  router: 'Ccip842gzYHhvdDkSyi2YVCoAWPbYJoApMFzSxQroE9C',
  offRamp: 'offqSMQWgQud6WJz694LRzkeN5kMYpCHTpXQr3Rkcjm',
  feeQuoter: 'FeeQPGkKDeRV1MgoYfMH6L8o3KeuYjwUZrgn4LRKfjHi',
  rmnRemote: 'RmnXLft1mSEwDgMKu2okYuHkiazxntFFcZFrrcXxYg7',
} as const;

export type CcipPrograms = Readonly<Record<keyof typeof deployedPrograms, string>>;

/** Those that the indexer reads, and others that transactions name. */
export const addresses = {
  ...programAddresses,
  commitReport: (offRamp: string, selector: bigint, root: Uint8Array) =>
    programAddresses.commitReport(offRamp, selector, toHex(sized(root, 32))),
  feeBillingSigner: (program: string) => deriveAddress(program, 'fee_billing_signer'),
  nonce: (router: string, selector: bigint, sender: string) =>
    deriveAddress(router, 'nonce', selector, pubkey(sender)),
  tokenAdminRegistry: (router: string, mint: string) =>
    deriveAddress(router, 'token_admin_registry', pubkey(mint)),
  externalExecutionConfig: (offRamp: string, receiver: string) =>
    deriveAddress(offRamp, 'external_execution_config', pubkey(receiver)),
  feesTowards: (feeQuoter: string, selector: bigint) => deriveAddress(feeQuoter, 'dest_chain', selector),
  curses: (rmnRemote: string) => deriveAddress(rmnRemote, 'curses'),
  /** The account of a pool that messages name as `sourcePoolAddress`. */
  poolConfig: (poolProgram: string, mint: string) =>
    deriveAddress(poolProgram, 'ccip_tokenpool_config', pubkey(mint)),
};

const account = (name: string, ...fields: readonly Uint8Array[]) =>
  concat(discriminator('account', name), ...fields);
const none = new Uint8Array(32);

export const routerConfig = (programs: CcipPrograms, selector: bigint, linkToken: string, owner: string) =>
  account(
    'Config',
    u8(1),
    u8(1),
    u64(selector),
    pubkey(owner),
    none,
    ...[programs.feeQuoter, programs.rmnRemote, linkToken, owner].map(pubkey),
  );

const restoreActions = { none: 0, upgrade: 1, rollback: 2 } as const;

/** The number of the version that was left, and with which change of version it comes back. */
export type Restore = { readonly number: bigint; readonly on: 'upgrade' | 'rollback' } | undefined;

/** A lane of the router, with an empty list of allowed senders. */
export const destChainAccount = (selector: bigint, lastNumber: bigint, restore: Restore) =>
  account(
    'DestChain',
    u8(1),
    u64(selector),
    u64(lastNumber),
    u64(restore?.number ?? 0n),
    u8(restoreActions[restore?.on ?? 'none']),
    u8(1),
    u32(0),
    bool(false),
  );

export const allowedOffRampAccount = (): Uint8Array => account('AllowedOfframp');

/** A zero-copy account: fields are aligned as in memory. */
export const offRampConfig = (selector: bigint, manualExecutionAfterSeconds: bigint, owner: string) =>
  account(
    'Config',
    u8(1),
    u8(1),
    new Uint8Array(6),
    u64(selector),
    i64(manualExecutionAfterSeconds),
    new Uint8Array(8),
    pubkey(owner),
    none,
    // Configurations of the oracles.
    new Uint8Array(1_000),
  );

export const referenceAddressesAccount = (programs: CcipPrograms, lookupTable: string) =>
  account(
    'ReferenceAddresses',
    u8(1),
    ...[programs.router, programs.feeQuoter, lookupTable, programs.rmnRemote].map(pubkey),
  );

/** @param nextNumber the next one to commit */
export function sourceChainAccount(selector: bigint, nextNumber: bigint, onRamp: Uint8Array): Uint8Array {
  const padded = new Uint8Array(64);
  padded.set(onRamp);
  const flags = [bool(true), bool(true), u8(1)];
  return account('SourceChain', u8(1), u64(selector), u64(nextNumber), ...flags, padded, u32(onRamp.length));
}

/** @param executionStates two bits a message, counted from the first */
export const commitReportAccount = (commit: TrueCommit, executionStates: bigint) =>
  account(
    'CommitReport',
    u8(1),
    u64(commit.sourceChainSelector),
    sized(commit.merkleRoot, 32),
    i64(BigInt(commit.blockTime)),
    u64(commit.minSeqNr),
    u64(commit.maxSeqNr),
    u128(executionStates),
  );

/** The start of a pool's account, up to what names the token, and its router. */
export function poolState(mint: string, router: string, poolProgram: string, tokenProgram: string) {
  const signer = deriveAddress(poolProgram, 'ccip_tokenpool_signer', pubkey(mint));
  const keys = [tokenProgram, mint, signer, signer].map(pubkey);
  const head = account('State', u8(1), ...keys.slice(0, 2), u8(9), ...keys.slice(2));
  // Owner, proposed owner, rate-limit administrator and router authority lie between, up to byte 266.
  const between = new Uint8Array(266 - head.length);
  return concat(head, between, pubkey(router), new Uint8Array(70));
}

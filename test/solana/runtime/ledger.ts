/** What a Solana node knows and `endpoint/node.ts` serves: blocks, transactions, signatures by address, and accounts. */

/** As `getTransaction` answers it in the encoding `json`, without what its profile changes. */
export interface LedgerTransaction {
  readonly signature: string;
  readonly slot: number;
  readonly version: 'legacy' | number;
  readonly message: TransactionMessage;
  readonly meta: TransactionMeta;
}

export interface TransactionMessage {
  readonly header: {
    readonly numRequiredSignatures: number;
    readonly numReadonlySignedAccounts: number;
    readonly numReadonlyUnsignedAccounts: number;
  };
  /** Those that are loaded from lookup tables are in the meta. */
  readonly accountKeys: readonly string[];
  readonly recentBlockhash: string;
  readonly instructions: readonly CompiledInstruction[];
  readonly addressTableLookups?: readonly {
    readonly accountKey: string;
    readonly writableIndexes: readonly number[];
    readonly readonlyIndexes: readonly number[];
  }[];
  /** Of version 1, in place of instructions to the compute budget program. */
  readonly transactionConfig?: { readonly computeUnitLimit: number; readonly priorityFee: number };
}

export interface CompiledInstruction {
  readonly programIdIndex: number;
  readonly accounts: readonly number[];
  /** Base58. */
  readonly data: string;
  readonly stackHeight: number | null;
}

export interface TransactionMeta {
  /** Null where it succeeded. */
  readonly err: TransactionFault | null;
  readonly fee: number;
  readonly computeUnitsConsumed: number;
  readonly logMessages: readonly string[];
  readonly innerInstructions: readonly {
    readonly index: number;
    readonly instructions: readonly CompiledInstruction[];
  }[];
  readonly loadedAddresses: { readonly writable: readonly string[]; readonly readonly: readonly string[] };
  readonly returnData?: { readonly programId: string; readonly data: readonly [string, 'base64'] };
}

/** As nodes write it, such as `{"InstructionError":[1,{"Custom":6001}]}`. */
export type TransactionFault = string | { readonly [kind: string]: unknown };

/** An entry of `getSignaturesForAddress`, without the status of its slot. */
export interface SignatureEntry {
  readonly signature: string;
  readonly slot: number;
  readonly err: TransactionFault | null;
  readonly memo: string | null;
}

export interface LedgerAccount {
  readonly owner: string;
  readonly data: Uint8Array;
  readonly lamports: number;
  readonly executable: boolean;
}

/** Where a transaction lies: they are ordered by slot, then by their order in it. */
export interface Place {
  readonly slot: number;
  readonly order: number;
}

export interface SignatureQuery {
  /** The highest slot that is looked at. */
  readonly upTo: number;
  /** Neither of the two is among the results. */
  readonly before?: Place | undefined;
  readonly until?: Place | undefined;
  readonly limit: number;
}

export interface Simulation {
  readonly err: TransactionFault | null;
  readonly logs: readonly string[];
  readonly unitsConsumed: number;
  readonly returnData: { readonly programId: string; readonly data: readonly [string, 'base64'] } | null;
}

export interface Ledger {
  readonly genesisHash: string;
  /** The newest slot with a block. */
  readonly head: number;
  /** The highest slot at or below this one that has a block. */
  slotAtOrBelow(slot: number): number;
  /** With its time in seconds since 1970. Undefined where the slot was skipped, or is above the head. */
  block(slot: number): { readonly blockhash: string; readonly blockTime: number } | undefined;
  transaction(signature: string): LedgerTransaction | undefined;
  placeOf(signature: string): Place | undefined;
  /** Newest first. */
  signaturesFor(address: string, query: SignatureQuery): readonly SignatureEntry[];
  /** As it was after the slot. */
  account(address: string, slot: number): LedgerAccount | undefined;
  accountsOf(program: string, slot: number): readonly (readonly [string, LedgerAccount])[];
  simulate(transaction: Uint8Array, slot: number): Simulation;
}

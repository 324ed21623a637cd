/**
 * Solana's virtual machine from npm (litesvm). The types are our own, of just what is used, so that the sources
 * type-check without the lab's packages.
 */
import { createRequire } from 'node:module';

export interface VmInstruction {
  programIdIndex(): number;
  accounts(): Uint8Array;
  data(): Uint8Array;
}

export interface VmMetadata {
  logs(): string[];
  innerInstructions(): { instruction(): VmInstruction; stackHeight(): number }[][];
  computeUnitsConsumed(): bigint;
  returnData(): { programId(): Uint8Array; data(): Uint8Array };
}

/** Of a transaction that failed. */
export interface VmFailure {
  err(): { readonly index?: number; err?(): { readonly code?: number } };
  meta(): VmMetadata;
}

export interface VmAccount {
  readonly address: string;
  readonly data: Uint8Array;
  readonly executable: boolean;
  readonly lamports: bigint;
  readonly programAddress: string;
  readonly space: bigint;
}

export interface Vm {
  withSigverify(isOn: boolean): Vm;
  withBlockhashCheck(isOn: boolean): Vm;
  withTransactionHistory(capacity: bigint): Vm;
  setAccount(account: VmAccount): void;
  addProgram(address: string, elf: Uint8Array): void;
  warpToSlot(slot: bigint): void;
  sendTransaction(transaction: {
    readonly messageBytes: Uint8Array;
    readonly signatures: Readonly<Record<string, Uint8Array>>;
  }): VmMetadata | VmFailure;
}

interface LiteSvm {
  readonly LiteSVM: new () => Vm;
}

export const { LiteSVM } = createRequire(import.meta.url)('litesvm') as LiteSvm;

/**
 * Decodes the return data of a failed execution: the errors that wrap each other, from the off-ramp's own to the one that
 * the receiver, the pool or the token raised.
 */
import { hex } from '@scure/base';
import { type AbiSignature, parseSignature, selectorOf } from '../abi-types.ts';
import { type AbiValue, readValues } from './abi-values.ts';
import { ccipErrors } from './ccip-errors.ts';
import { libraryErrors } from './library-errors.ts';

/** Custom errors by their selectors. */
export type ErrorTable = ReadonlyMap<string, AbiSignature>;

export interface ErrorArgument {
  /** Undefined where the signature has no name for it. */
  readonly name: string | undefined;
  readonly value: string;
}

export interface DecodedError {
  readonly name: string;
  readonly arguments: readonly ErrorArgument[];
  /** The off-ramp has cut off its data; arguments may be missing, or the last one incomplete. */
  readonly isCut: boolean;
  /** Whether the name is not from our own tables but from the ABIs of the operator. */
  readonly isFromOperator: boolean;
  /** The name is the claim of a program, in its log. */
  readonly isFromProgram?: true;
}

export interface RevertData {
  /** Errors whose argument is the data of another one, from the outside in. */
  readonly wrappers: readonly DecodedError[];
  /** The innermost error; null where its data is empty, or of an error that is not known. */
  readonly error: DecodedError | null;
  /** The innermost data, shortened for people; `0x` where it is empty. */
  readonly data: string;
}

/** Off-ramps and routers copy no more than this of what a call returns. */
const MAX_RETURN_BYTES = 132;
const SELECTOR_BYTES = 4;
/** Wrappers of wrappers that are looked into. Real ones have three at most. */
const MAX_WRAPPERS = 6;
const MAX_SHOWN_BYTES = 200;

/** Errors that have the data of another error as an argument, and which argument that is. */
const wrapperArguments: Readonly<Record<string, readonly string[]>> = {
  CallFailed: ['result'],
  CustomError: ['err'],
  ExecutionError: ['err', 'error'],
  MessageValidationError: ['errorReason'],
  NoStateProgressMade: ['err'],
  PolicyEngineDetachReverted: ['err'],
  ReceiverError: ['err', 'error'],
  TokenHandlingError: ['err', 'error'],
};

const languageErrors = ['Error(string message)', 'Panic(uint256 code)'];

/** The table of these errors. Of two with the same types the first is taken, and the names only where they agree. */
export function errorTable(signatures: readonly string[]): ErrorTable {
  const table = new Map<string, AbiSignature>();
  for (const text of signatures) {
    const signature = parseSignature(text);
    if (!signature) throw new Error(`"${text}" is not the signature of an error`);
    const key = selectorOf(signature);
    const first = table.get(key) ?? signature;
    const parameters = first.parameters.map(({ name, type }, index) => ({
      name: signature.parameters[index]?.name === name ? name : undefined,
      type,
    }));
    table.set(key, { name: first.name, parameters });
  }
  return table;
}

/** The errors of Solidity, CCIP's contracts and common libraries. */
export const knownErrors: ErrorTable = errorTable([...languageErrors, ...ccipErrors, ...libraryErrors]);

let operatorErrors: ErrorTable = new Map();

/** Replaces the errors that the operator has added to the known ones. */
export function defineErrors(errors: ErrorTable): void {
  operatorErrors = errors;
}

/** @param errors looked up in their order; the known ones come first, because there are explanations of them */
export function decodeRevertData(
  data: Uint8Array,
  errors: readonly ErrorTable[] = [knownErrors, operatorErrors],
): RevertData {
  const wrappers: DecodedError[] = [];
  let inner = data;
  let isCut = data.length === MAX_RETURN_BYTES;
  for (;;) {
    const decoded = decodeError(inner, errors, isCut);
    const wrapped = wrappers.length < MAX_WRAPPERS ? decoded?.wrapped : undefined;
    if (!decoded || !wrapped?.bytes)
      return { wrappers, error: decoded?.error ?? null, data: shownData(inner) };
    wrappers.push(decoded.error);
    inner = wrapped.bytes;
    isCut ||= wrapped.isCut || inner.length === MAX_RETURN_BYTES;
  }
}

function decodeError(
  data: Uint8Array,
  errors: readonly ErrorTable[],
  isCut: boolean,
): { readonly error: DecodedError; readonly wrapped: AbiValue | undefined } | undefined {
  if (data.length < SELECTOR_BYTES) return undefined;
  const selector = hex.encode(data.subarray(0, SELECTOR_BYTES));
  for (const table of errors) {
    const signature = table.get(selector);
    const decoded = signature && decodeAs(signature, data, isCut, table !== knownErrors);
    if (decoded) return decoded;
  }
  return undefined;
}

function decodeAs(
  { name, parameters }: AbiSignature,
  data: Uint8Array,
  isCut: boolean,
  isFromOperator: boolean,
): ReturnType<typeof decodeError> {
  const values = readValues(
    parameters.map(({ type }) => type),
    data.subarray(SELECTOR_BYTES),
  );
  // Data that does not fit belongs to another error with the same selector, unless its end is missing.
  if (!values)
    return isCut ? { error: { name, arguments: [], isCut, isFromOperator }, wrapped: undefined } : undefined;
  const names = wrapperArguments[name] ?? [];
  // Where versions disagree about the argument's name, it is the one of bytes.
  const at = parameters.findIndex(
    (parameter) =>
      names.length > 0 &&
      parameter.type.kind === 'bytes' &&
      (parameter.name === undefined || names.includes(parameter.name)),
  );
  const shown = values.flatMap(({ text }, index) =>
    index === at ? [] : [{ name: parameters[index]?.name, value: text }],
  );
  return {
    error: { name, arguments: shown, isCut: values.some((value) => value.isCut), isFromOperator },
    wrapped: values[at],
  };
}

function shownData(data: Uint8Array): string {
  const shown = data.subarray(0, MAX_SHOWN_BYTES);
  return `0x${hex.encode(shown)}${shown.length < data.length ? '…' : ''}`;
}

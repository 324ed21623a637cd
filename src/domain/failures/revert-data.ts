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

/** As the API writes it. */
export interface DecodedError {
  readonly name: string;
  /** The name is null where the signature has none. */
  readonly arguments: readonly { readonly name: string | null; readonly value: string }[];
  /** The off-ramp has cut off its data; arguments may be missing, or the last one incomplete. */
  readonly cut: boolean;
  /** Whose name it is: of our tables, of the ABIs of the operator, or the claim of a program in its log. */
  readonly namedBy: 'lanescan' | 'operator' | 'program';
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
    if (!decoded || !wrapped?.bytes) {
      const shown = `0x${hex.encode(inner.subarray(0, MAX_SHOWN_BYTES))}`;
      const shownData = inner.length > MAX_SHOWN_BYTES ? `${shown}…` : shown;
      return { wrappers, error: decoded?.error ?? null, data: shownData };
    }
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
    const decoded =
      signature && decodeAs(signature, data, isCut, table === knownErrors ? 'lanescan' : 'operator');
    if (decoded) return decoded;
  }
  return undefined;
}

function decodeAs(
  { name, parameters }: AbiSignature,
  data: Uint8Array,
  isCut: boolean,
  namedBy: DecodedError['namedBy'],
): ReturnType<typeof decodeError> {
  const values = readValues(
    parameters.map(({ type }) => type),
    data.subarray(SELECTOR_BYTES),
  );
  // Data that does not fit belongs to another error with the same selector, unless its end is missing.
  if (!values)
    return isCut ? { error: { name, arguments: [], cut: true, namedBy }, wrapped: undefined } : undefined;
  const names = wrapperArguments[name] ?? [];
  // Where versions disagree about the argument's name, it is the one of bytes.
  const at = parameters.findIndex(
    (parameter) =>
      names.length > 0 &&
      parameter.type.kind === 'bytes' &&
      (parameter.name === undefined || names.includes(parameter.name)),
  );
  const shown = values.flatMap(({ text }, index) =>
    index === at ? [] : [{ name: parameters[index]?.name ?? null, value: text }],
  );
  return {
    error: { name, arguments: shown, cut: values.some((value) => value.isCut), namedBy },
    wrapped: values[at],
  };
}

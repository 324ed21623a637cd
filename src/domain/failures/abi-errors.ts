/** The custom errors of a contract's ABI, as compilers write it: a plain list, or an artifact whose member `abi` is the list. */
import { type AbiSignature, parseSignature } from '../abi-types.ts';

const MAX_TUPLE_DEPTH = 4;
const MAX_INPUTS = 50;
const IDENTIFIER = /^[A-Za-z_$][\w$]{0,99}$/;

/** Or what is wrong with the ABI. Entries that are not errors are ignored: functions, events, constructors. */
export function errorsOfAbi(json: unknown): readonly AbiSignature[] | string {
  const entries = Array.isArray(json) ? json : memberOf(json, 'abi');
  if (!Array.isArray(entries)) return 'is neither an ABI nor an artifact with an `abi`';
  const errors: AbiSignature[] = [];
  for (const [index, entry] of entries.entries()) {
    if (memberOf(entry, 'type') !== 'error') continue;
    const signature = signatureOf(entry);
    if (!signature) {
      const name = memberOf(entry, 'name');
      const named = typeof name === 'string' && IDENTIFIER.test(name) ? ` (${name})` : '';
      return `has an error at place ${index + 1}${named} that is not of an ABI`;
    }
    errors.push(signature);
  }
  return errors;
}

function signatureOf(entry: unknown): AbiSignature | undefined {
  const name = memberOf(entry, 'name');
  const inputs = parametersText(memberOf(entry, 'inputs') ?? [], MAX_TUPLE_DEPTH);
  return typeof name === 'string' && inputs !== undefined ? parseSignature(`${name}(${inputs})`) : undefined;
}

/** As in a signature: `address target,(uint256,bytes)[] calls`. */
function parametersText(inputs: unknown, depth: number): string | undefined {
  if (!Array.isArray(inputs) || inputs.length > MAX_INPUTS || depth === 0) return undefined;
  const texts = inputs.map((input) => {
    const type = typeText(input, depth);
    const name = memberOf(input, 'name');
    return type !== undefined && typeof name === 'string' && IDENTIFIER.test(name) ? `${type} ${name}` : type;
  });
  return texts.includes(undefined) ? undefined : texts.join(',');
}

function typeText(input: unknown, depth: number): string | undefined {
  const type = memberOf(input, 'type');
  if (typeof type !== 'string' || type.length > 100) return undefined;
  if (!type.startsWith('tuple')) return type;
  const members = parametersText(memberOf(input, 'components'), depth - 1);
  return members === undefined ? undefined : `(${members})${type.slice('tuple'.length)}`;
}

function memberOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null
    ? (value as Readonly<Record<string, unknown>>)[key]
    : undefined;
}

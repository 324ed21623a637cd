/**
 * The code of contracts: the real ones of CCIP as their package ships them, and the lab's own (`contracts/`),
 * compiled once by the compiler that comes with hardhat.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Abi, Hex } from 'viem';

export interface ContractCode {
  readonly abi: Abi;
  readonly bytecode: Hex;
}

type CompiledContracts = Readonly<Record<string, ContractCode>>;

const require = createRequire(import.meta.url);
const sourceFolder = path.join(import.meta.dirname, 'contracts');
const cacheFolder = path.join(import.meta.dirname, 'node_modules/.cache/lanescan-lab');
const ccipCode = new Map<string, ContractCode>();
let compiled: CompiledContracts | undefined;

/**
 * @example ccipContract('v1_6_0/onramp')
 */
export function ccipContract(name: string): ContractCode {
  let code = ccipCode.get(name);
  if (!code) {
    const folder = path.dirname(require.resolve('@chainlink/contracts-ccip/package.json'));
    code = {
      abi: JSON.parse(readFileSync(path.join(folder, 'abi', `${name}.json`), 'utf8')),
      bytecode: readFileSync(path.join(folder, 'bytecode', `${name}.bin`), 'utf8').trim() as Hex,
    };
    ccipCode.set(name, code);
  }
  return code;
}

/** One of the lab's own contracts. */
export function labContract(
  name: 'MintableToken' | 'WrappedNative' | 'BatchSender' | 'Receiver' | 'Impostor',
): ContractCode {
  compiled ??= compileAll();
  const code = compiled[name];
  if (!code) throw new Error(`test/lab/contracts has no contract ${name}.`);
  return code;
}

function compileAll(): CompiledContracts {
  const files = readdirSync(sourceFolder).filter((file) => file.endsWith('.sol'));
  const input = {
    language: 'Solidity',
    sources: Object.fromEntries(
      files
        .sort()
        .map((file) => [file, { content: readFileSync(path.join(sourceFolder, file), 'utf8') }] as const),
    ),
    settings: {
      optimizer: { enabled: true },
      evmVersion: 'paris',
      outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
    },
  };
  const hash = createHash('sha256').update(JSON.stringify(input)).digest('hex').slice(0, 32);
  const cached = path.join(cacheFolder, `${hash}.json`);
  try {
    return JSON.parse(readFileSync(cached, 'utf8'));
  } catch {
    const contracts = compile(input);
    keep(cached, JSON.stringify(contracts));
    return contracts;
  }
}

function keep(file: string, text: string): void {
  // Renamed into place: test files that start at once must never read half a file.
  const draft = `${file}.${process.pid}`;
  try {
    mkdirSync(cacheFolder, { recursive: true });
    writeFileSync(draft, text);
    renameSync(draft, file);
  } catch {
    // The packages may belong to somebody else; then it is compiled anew each time.
  }
}

interface CompilerOutput {
  readonly errors?: readonly { readonly severity: string; readonly formattedMessage: string }[];
  /** By file and name. */
  readonly contracts?: Readonly<Record<string, Readonly<Record<string, CompiledContract>>>>;
}

interface CompiledContract {
  readonly abi: Abi;
  readonly evm: { readonly bytecode: { readonly object: string } };
}

function compile(input: unknown): CompiledContracts {
  // Loaded here: the compiler takes a second to load, and seldom is anything to compile.
  const solc: { compile(input: string): string } = require('solc');
  const { errors = [], contracts = {} }: CompilerOutput = JSON.parse(solc.compile(JSON.stringify(input)));
  const failures = errors.filter(({ severity }) => severity === 'error');
  if (failures.length > 0)
    throw new Error(failures.map(({ formattedMessage }) => formattedMessage).join('\n'));
  return Object.fromEntries(
    Object.values(contracts).flatMap((file) =>
      Object.entries(file).map(([name, { abi, evm }]) => [
        name,
        { abi, bytecode: `0x${evm.bytecode.object}` as Hex },
      ]),
    ),
  );
}

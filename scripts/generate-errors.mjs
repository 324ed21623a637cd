/**
 * Writes src/domain/failures/ccip-errors.ts: the custom errors of all CCIP contracts, from the contracts' package in
 * test/lab, and solana-ccip-errors.ts: those of the Solana programs, from the official SDK there.
 *
 *   npm run errors               after raising the package's version in test/lab
 *   npm run errors -- --check    writes nothing, fails when the table differs
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const target = new URL('../src/domain/failures/ccip-errors.ts', import.meta.url);
const solanaTarget = new URL('../src/domain/failures/solana-ccip-errors.ts', import.meta.url);
const solanaPrograms = {
  offRamp: 'CCIP_OFFRAMP',
  common: 'CCIP_COMMON',
  pool: 'BASE_TOKEN_POOL',
  burnMintPool: 'BURN_MINT_TOKEN_POOL',
  cctpPool: 'CCIP_CCTP_TOKEN_POOL',
};
const abis = fileURLToPath(
  new URL('../test/lab/node_modules/@chainlink/contracts-ccip/abi', import.meta.url),
);

const LINE_WIDTH = 110;

/** Contracts that exist for tests only. */
const testContracts = /mock|helper|tester/;

const files = readdirSync(abis, { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.json') && !testContracts.test(path.basename(file)),
);
const signatures = new Set(
  files.flatMap((file) =>
    JSON.parse(readFileSync(path.join(abis, file), 'utf8'))
      .filter(({ type }) => type === 'error')
      .map(({ name, inputs }) => `${name}(${inputs.map(parameter).join(',')})`),
  ),
);
const text = `/** Written by scripts/generate-errors.mjs: the custom errors of the CCIP contracts, versions 1.0 to 2.0. */

export const ccipErrors: readonly string[] = \`
${filled([...signatures].sort().map((signature, index) => (index === signatures.size - 1 ? signature : `${signature};`)))}
\`
  .trim()
  .split(/;\\s/);
`;

const solanaText = `/**
 * Written by scripts/generate-errors.mjs: the errors of CCIP's Solana programs. Numbers are consecutive; several programs
 * begin with the same one, so that a number means something only together with its program.
 */

export interface ProgramErrors {
  /** The number of the first error. */
  readonly first: number;
  readonly names: readonly string[];
}

/** @param names separated by spaces or line ends */
export function numberedFrom(first: number, names: string): ProgramErrors {
  return { first, names: names.trim().split(/\\s+/) };
}

${(await Promise.all(Object.entries(solanaPrograms).map(programErrors))).join('\n')}`;

const written = [
  [target, text],
  [solanaTarget, solanaText],
];
if (process.argv.includes('--check')) {
  const differing = written.filter(([file, expected]) => readFileSync(file, 'utf8') !== expected);
  for (const [file] of differing)
    console.error(
      `${path.basename(file.pathname)} differs from the packages in test/lab; run \`npm run errors\`.`,
    );
  process.exit(differing.length > 0 ? 1 : 0);
}
for (const [file, content] of written) writeFileSync(file, content);
console.log(`${signatures.size} errors of contracts`);

async function programErrors([key, name]) {
  const file = new URL(
    `../test/lab/node_modules/@chainlink/ccip-sdk/dist/solana/idl/1.6.0/${name}.js`,
    import.meta.url,
  );
  const { IDL } = await import(file.href);
  const [{ code: first }] = IDL.errors;
  if (IDL.errors.some(({ code }, index) => code !== first + index))
    throw new Error(`The errors of ${name} are not consecutive.`);
  const names = filled(IDL.errors.map((error) => error.name));
  return `export const ${key}Errors = numberedFrom(\n  ${first},\n  \`\n${names}\n\`,\n);\n`;
}

/** As many on a line as fit. */
function filled(texts) {
  const lines = [];
  for (const text of texts) {
    const longer = `${lines.at(-1)} ${text}`;
    if (lines.length > 0 && longer.length <= LINE_WIDTH) lines[lines.length - 1] = longer;
    else lines.push(text);
  }
  return lines.join('\n');
}

function parameter({ name, ...input }) {
  return name ? `${typeOf(input)} ${name}` : typeOf(input);
}

function typeOf({ type, components = [] }) {
  return type.startsWith('tuple') ? `(${components.map(typeOf).join(',')})${type.slice(5)}` : type;
}

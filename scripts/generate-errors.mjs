/**
 * Writes src/domain/failures/ccip-errors.ts: the custom errors of all CCIP contracts, from the contracts' package in
 * test/lab.
 *
 *   npm run errors               after raising the package's version in test/lab
 *   npm run errors -- --check    writes nothing, fails when the table differs
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const target = new URL('../src/domain/failures/ccip-errors.ts', import.meta.url);
const abis = fileURLToPath(
  new URL('../test/lab/node_modules/@chainlink/contracts-ccip/abi', import.meta.url),
);

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

export const ccipErrors: readonly string[] = [
${[...signatures]
  .sort()
  .map((signature) => `  '${signature}',`)
  .join('\n')}
];
`;

if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') === text) process.exit(0);
  console.error(
    'src/domain/failures/ccip-errors.ts differs from the contracts in test/lab; run `npm run errors`.',
  );
  process.exit(1);
}
writeFileSync(target, text);
console.log(`${signatures.size} errors`);

function parameter({ name, ...input }) {
  return name ? `${typeOf(input)} ${name}` : typeOf(input);
}

function typeOf({ type, components = [] }) {
  return type.startsWith('tuple') ? `(${components.map(typeOf).join(',')})${type.slice(5)}` : type;
}

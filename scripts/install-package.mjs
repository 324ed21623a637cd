/**
 * Installs one of the packages that live in folders of their own, when its dependencies are missing or its lock file has
 * changed since:
 *
 *     node scripts/install-package.mjs test/lab
 *
 * They are apart because of what they bring (the official client alone brings 200 others): tests and the benchmark need
 * it, people who only run the service do not.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const [name] = process.argv.slice(2);
if (name === undefined) {
  console.error('Which package? Say its folder, for example: node scripts/install-package.mjs test/lab');
  process.exit(2);
}
const folder = path.join(import.meta.dirname, '..', name);
// Written last, so an installation that was cut short is not taken for a whole one.
const stamp = path.join(folder, 'node_modules', '.installed-lock');
const wanted = createHash('sha256')
  .update(readFileSync(path.join(folder, 'package-lock.json')))
  .digest('hex');

if (installed() === wanted) {
  console.log(`${name}: packages are up to date.`);
} else {
  console.log(`${name}: installing packages, which can take a few minutes.`);
  const failure = install();
  if (failure) {
    console.error(`${name}: installation failed: ${failure}`);
    process.exit(1);
  }
  writeFileSync(stamp, wanted);
}

function installed() {
  try {
    return readFileSync(stamp, 'utf8');
  } catch {
    return undefined;
  }
}

function install() {
  // None of them needs an install script: native parts have JavaScript fallbacks. The client and a dependency of it
  // ask for a newer Node than they use, which npm would report at length; hence errors only.
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const npm = spawnSync('npm', ['ci', ...flags], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: process.platform === 'win32',
  });
  if (npm.error) return `npm could not be started (${npm.error.message})`;
  if (npm.signal) return `npm ci was ended by ${npm.signal}`;
  return npm.status === 0 ? undefined : `npm ci in ${name} ended with code ${npm.status}`;
}

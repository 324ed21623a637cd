/**
 * Installs the packages of test/lab, when they are missing or when its lock file has changed since.
 *
 * They are a package of their own because the official client brings 200 others: tests need it, people
 * who only run the service do not.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const lab = new URL('../test/lab/', import.meta.url);
// Written last, so an installation that was cut short is not taken for a whole one.
const stamp = new URL('node_modules/.installed-lock', lab);
const wanted = createHash('sha256')
  .update(readFileSync(new URL('package-lock.json', lab)))
  .digest('hex');

if (installed() === wanted) {
  console.log('test/lab: packages are up to date.');
} else {
  console.log('test/lab: installing packages (about 470 MB).');
  const failure = install();
  if (failure) {
    console.error(`test/lab: installation failed: ${failure}`);
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
  // No package of the lab needs its install script: native parts have JavaScript fallbacks. The client and a
  // dependency ask for a newer Node than they use, which npm would report at length; hence errors only.
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const npm = spawnSync('npm', ['ci', ...flags], {
    cwd: fileURLToPath(lab),
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: process.platform === 'win32',
  });
  if (npm.error) return `npm could not be started (${npm.error.message})`;
  if (npm.signal) return `npm ci was ended by ${npm.signal}`;
  return npm.status === 0 ? undefined : `npm ci in test/lab ended with code ${npm.status}`;
}

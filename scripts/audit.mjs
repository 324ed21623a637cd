/**
 * Asks the registry for known vulnerabilities of what users run (not of what builds and tests it).
 *
 * Exit status: 0 none known, 1 some are, 2 the registry did not say, which is not the same as none.
 */
import { spawnSync } from 'node:child_process';

const npm = spawnSync('npm', ['audit', '--omit=dev', '--json'], {
  encoding: 'utf8',
  shell: process.platform === 'win32',
});
const report = parse(npm.stdout);

if (report?.metadata?.vulnerabilities === undefined) {
  const reason = report?.message ?? report?.error?.summary ?? npm.error?.message ?? firstLine(npm.stderr);
  console.error(
    `\nNOT CHECKED for known vulnerabilities: the registry gave no answer (${reason}).\n` +
      'Nothing is known either way. Run this again where the registry answers audits.\n',
  );
  process.exit(2);
}

const { total, ...severities } = report.metadata.vulnerabilities;
if (total === 0) {
  console.log('No known vulnerability in the runtime dependencies.');
  process.exit(0);
}
for (const [name, { severity, range, via, fixAvailable }] of Object.entries(report.vulnerabilities)) {
  const titles = via.map((cause) => (typeof cause === 'string' ? `through ${cause}` : cause.title));
  const fix = fixAvailable ? 'a fix is available' : 'no fix yet';
  console.error(`${severity}: ${name} ${range}: ${titles.join('; ')} (${fix})`);
}
const counts = Object.entries(severities).filter(([, count]) => count > 0);
console.error(`\n${total} known: ${counts.map(([severity, count]) => `${count} ${severity}`).join(', ')}`);
process.exit(1);

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function firstLine(text) {
  return (text ?? '').trim().split('\n')[0] || 'npm said nothing';
}

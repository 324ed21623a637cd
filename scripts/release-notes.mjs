/**
 * Prints the section of CHANGELOG.md for one version:
 *
 *     node scripts/release-notes.mjs 1.0.0
 *
 * Exit status 1 where there is none: a release without notes is a mistake.
 */
import { readFileSync } from 'node:fs';

const [version] = process.argv.slice(2);
if (version === undefined) {
  console.error('Which version? For example: node scripts/release-notes.mjs 1.0.0');
  process.exit(2);
}
const changelog = readFileSync(new URL('../CHANGELOG.md', import.meta.url), 'utf8');
const sections = changelog.split(/^## /m).slice(1);
const section = sections.find((text) => text.split(/[\s\]]/, 1)[0].replace('[', '') === version);
if (section === undefined) {
  console.error(`CHANGELOG.md has no section for ${version}. Add "## ${version}" before tagging.`);
  process.exit(1);
}
console.log(section.slice(section.indexOf('\n')).trim());

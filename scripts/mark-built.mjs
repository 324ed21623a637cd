/** Marks dist/ as built from the sources as they are, so that tests which need it do not build it again. */
import { utimesSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const stamp = fileURLToPath(new URL('../dist/.built-for-tests', import.meta.url));
writeFileSync(stamp, '');
const now = new Date();
utimesSync(stamp, now, now);

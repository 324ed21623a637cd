import { readFileSync } from 'node:fs';

/** package.json is two folders up, in the source and in the build. */
const { version, engines } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

export const lanescanVersion: string = version;
/** The oldest Node that Lanescan runs on, such as `20.19`. */
export const oldestNode: string = engines.node.replace(/^>=/, '');

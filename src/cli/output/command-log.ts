/** The log of long-running commands: JSON lines, or readable lines on a terminal. */
import type { Logger } from 'pino';
import type { WriteLog } from '../../base/log.ts';
import { printable } from '../../text/format.ts';
import type { Config } from '../config/config.ts';
import type { CliContext, TerminalStream } from '../context.ts';

/** A field of each line, to filter by. */
export type Component = 'http' | 'store' | 'index' | 'mirror' | 'import' | 'webhooks' | 'diagnosis';

/** `stream`: for a command that also draws a progress bar on the terminal. */
export async function openLog(
  { logLevel, warnings }: Config,
  { err, environment }: CliContext,
  {
    stream = err,
    isBatched = false,
  }: { readonly stream?: TerminalStream; readonly isBatched?: boolean } = {},
): Promise<Logger> {
  // Loaded on demand: other commands do not need the library.
  const { createLog } = await import('./log.ts');
  const log = createLog(logLevel, stream, environment, isBatched);
  for (const line of warnings) log.info(line);
  return log;
}

export function logWriter(log: Logger, component: Component): WriteLog {
  const lines = log.child({ component });
  return (line, { level = 'info', network } = {}) =>
    lines[level](network === undefined ? {} : { network }, printable(line));
}

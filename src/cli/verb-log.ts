/** The log of long-running verbs, all in one format: JSON lines, or readable ones on a terminal. */
import type { Logger } from 'pino';
import type { Notice } from '../base/notice.ts';
import type { Config } from './config.ts';
import type { CliContext, TerminalStream } from './context.ts';
import { printable } from './terminal-text.ts';

/** Part of a line, so that an operator can filter by it. */
export type Component = 'http' | 'store' | 'index' | 'mirror' | 'import' | 'webhooks';

/** `stream` is for a verb that draws on the terminal beside its log lines. */
export async function openLog(
  { logLevel, notices }: Config,
  { err, environment }: CliContext,
  {
    stream = err,
    isBatched = false,
  }: { readonly stream?: TerminalStream; readonly isBatched?: boolean } = {},
): Promise<Logger> {
  // Loaded here: the other verbs need not load the library.
  const { createLog } = await import('./log.ts');
  const log = createLog(logLevel, stream, environment, isBatched);
  for (const line of notices) log.info(line);
  return log;
}

/** Writes notices of a component to the log, at the level that each has. */
export function noticeTo(log: Logger, component: Component): Notice {
  const lines = log.child({ component });
  return (line, { level = 'info', network } = {}) =>
    lines[level](network === undefined ? {} : { network }, printable(line));
}

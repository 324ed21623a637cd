/** Structured logs: JSON lines for machines, readable ones on a terminal. */
import { type Logger, pino } from 'pino';
import { prettyFactory } from 'pino-pretty';
import type { LogLevel } from './config.ts';
import type { TerminalStream } from './context.ts';
import { wantsColour } from './terminal-text.ts';

/** @param isBatched lines of one turn of the event loop are written together: for a line a request */
export function createLog(
  level: LogLevel,
  stream: TerminalStream,
  environment: NodeJS.ProcessEnv,
  isBatched: boolean,
): Logger {
  const options = { level, base: null, timestamp: createTimestamp() };
  if (!stream.isTTY)
    return pino(options, { write: isBatched ? inBatches(stream) : (line) => void stream.write(line) });
  const readable = prettyFactory({
    colorize: wantsColour(stream, environment),
    translateTime: 'SYS:HH:MM:ss',
    ignore: 'pid,hostname,reqId,component,network',
    messageFormat: ({ network, msg }) => (network === undefined ? `${msg}` : `${network}: ${msg}`),
    singleLine: true,
  });
  return pino(options, { write: (line) => void stream.write(readable(line) ?? '') });
}

/** Many lines share a millisecond; writing it down is a good part of what a line costs. */
function createTimestamp(): () => string {
  let at = 0;
  let text = '';
  return () => {
    const now = Date.now();
    if (now !== at) text = `,"time":"${new Date(now).toISOString()}"`;
    at = now;
    return text;
  };
}

/** The lines of one turn of the event loop go out together: a line each would be a system call each. */
function inBatches(stream: TerminalStream): (line: string) => void {
  let waiting = '';
  const flush = () => {
    if (waiting !== '') stream.write(waiting);
    waiting = '';
  };
  // However the process ends, but for a kill: what was said is written.
  process.on('exit', flush);
  return (line) => {
    if (waiting === '') setImmediate(flush);
    waiting += line;
  };
}

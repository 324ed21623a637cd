/** Structured logs: JSON lines, or readable lines on a terminal. */
import { type Logger, pino, stdTimeFunctions } from 'pino';
import { prettyFactory } from 'pino-pretty';
import type { LogLevel } from '../config/config.ts';
import type { TerminalStream } from '../context.ts';
import { wantsColour } from './terminal-text.ts';

/** @param isBatched write the lines of one turn of the event loop together: for access logs */
export function createLog(
  level: LogLevel,
  stream: TerminalStream,
  environment: NodeJS.ProcessEnv,
  isBatched: boolean,
): Logger {
  const options = { level, base: null, timestamp: stdTimeFunctions.isoTime };
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

/** Writes the lines of one turn of the event loop in one system call. */
function inBatches(stream: TerminalStream): (line: string) => void {
  let waiting = '';
  const flush = () => {
    if (waiting !== '') stream.write(waiting);
    waiting = '';
  };
  // Pending lines are written at any exit other than a kill.
  process.on('exit', flush);
  return (line) => {
    if (waiting === '') setImmediate(flush);
    waiting += line;
  };
}

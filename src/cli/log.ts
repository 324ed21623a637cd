/** Structured logs: JSON lines for machines, readable ones on a terminal. */
import { type Logger, pino } from 'pino';
import pretty from 'pino-pretty';
import type { LogLevel } from './config.ts';
import type { TerminalStream } from './context.ts';
import { wantsColour } from './terminal-text.ts';

export function createLog(level: LogLevel, stream: TerminalStream, environment: NodeJS.ProcessEnv): Logger {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  if (!stream.isTTY) return pino(options, { write: (line: string) => void stream.write(line) });
  const readable = pretty({
    colorize: wantsColour(stream, environment),
    translateTime: 'SYS:HH:MM:ss',
    ignore: 'pid,hostname,reqId',
    singleLine: true,
    sync: true,
    destination: 2,
  });
  return pino(options, readable);
}

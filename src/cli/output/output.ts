/** Writing to standard output with backpressure. */
import { OperatorError } from '../../base/operator-error.ts';
import { printableJson } from '../../text/format.ts';
import type { CliContext, TerminalStream } from '../context.ts';
import { createPaint } from './terminal-text.ts';

/** The reader of the output has closed it, as `head` does. That ends a command, but is not a failure. */
export class OutputClosedError extends Error {}

/** Resolves when the text (or the bytes) was accepted; awaiting it keeps a long output in constant memory. */
export function writeOut(stream: TerminalStream, text: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    // Node's streams take bytes as well; TerminalStream declares only text.
    stream.write(text as string, (error) => {
      if (!error) resolve();
      else if (isClosedPipe(error)) reject(new OutputClosedError());
      else
        reject(new OperatorError(`Cannot write the output: ${error.message}.`, 'Fix that and run it again.'));
    });
  });
}

export function isClosedPipe(error: NodeJS.ErrnoException): boolean {
  return error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED';
}

/** A JSON text as a line: as it is, on a terminal with control characters as escapes. */
export function jsonLine({ isTTY }: TerminalStream, json: string): string {
  return `${isTTY ? printableJson(json) : json}\n`;
}

/** Writes each object as a line of JSON. */
export async function writeObjects(objects: readonly object[], { out }: CliContext): Promise<void> {
  for (const object of objects) await writeOut(out, jsonLine(out, JSON.stringify(object)));
}

/** Writes a remark: on a terminal below the output; otherwise on standard error, so that a pipe gets only data. */
export async function writeNote(
  text: string,
  isJson: boolean,
  { out, err, environment }: Pick<CliContext, 'out' | 'err' | 'environment'>,
): Promise<void> {
  const isBelow = out.isTTY === true && !isJson;
  const stream = isBelow ? out : err;
  await writeOut(stream, `${isBelow ? '\n' : ''}${createPaint(stream, environment)(text, 'dim')}\n`);
}

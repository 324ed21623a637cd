/** Writing to standard output at the pace of whoever reads it. */
import { OperatorError } from '../base/operator-error.ts';
import type { TerminalStream } from './context.ts';

/** Whoever read the output has gone, as `head` does when it has enough. That ends a verb, but is no failure. */
export class OutputClosed extends Error {}

/** Resolves when the text (or the bytes) is handed over; that is what keeps a long output in constant memory. */
export function writeOut(stream: TerminalStream, text: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    // Node's streams take bytes as well; text is all that the verbs write elsewhere.
    stream.write(text as string, (error) => {
      if (!error) resolve();
      else if (isClosedPipe(error)) reject(new OutputClosed());
      else
        reject(
          new OperatorError(`Cannot write the output: ${error.message}.`, 'Mend that and run it again.'),
        );
    });
  });
}

export function isClosedPipe(error: NodeJS.ErrnoException): boolean {
  return error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED';
}

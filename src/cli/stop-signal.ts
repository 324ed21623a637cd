/**
 * When to stop: on SIGINT, SIGTERM and SIGHUP, and when npm, which started this process, is gone.
 *
 * All of them stop a verb in good order, so that the embedded PostgreSQL is stopped too. A parent other than npm may go
 * at any time: that is how a shell starts a background process.
 */

const INTERRUPTED_STATUS = 130;
/** Ctrl-C under npm arrives twice, from the terminal and from npm, at the same moment. */
const SAME_MOMENT_MS = 500;
const PARENT_LOOK_EVERY_MS = 1_000;

/** Aborted by the first signal. A second SIGINT or SIGTERM ends the process at once. */
export function createStopSignal(process: NodeJS.Process): AbortSignal {
  const stopping = new AbortController();
  let stoppedAt = 0;
  const stop = () => {
    if (stopping.signal.aborted) return;
    stoppedAt = performance.now();
    stopping.abort();
  };
  const stopOrEnd = () => {
    if (stopping.signal.aborted && performance.now() - stoppedAt > SAME_MOMENT_MS) {
      process.exit(INTERRUPTED_STATUS);
    }
    stop();
  };
  process.on('SIGINT', stopOrEnd);
  process.on('SIGTERM', stopOrEnd);
  // A terminal that closes sends it more than once, from the kernel and from the shell: it never means "at once".
  process.on('SIGHUP', stop);
  if (process.env.npm_lifecycle_event !== undefined) whenParentEnds(process, stop);
  return stopping.signal;
}

function whenParentEnds(process: NodeJS.Process, stop: () => void): void {
  const parent = process.ppid;
  const looking = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(looking);
    stop();
  }, PARENT_LOOK_EVERY_MS).unref();
}

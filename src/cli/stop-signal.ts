/**
 * The stop signal: SIGINT, SIGTERM, SIGHUP, or the end of the npm process that started this one.
 *
 * Each of them causes a graceful shutdown, so that the embedded PostgreSQL is stopped too. The end of a parent other than
 * npm is ignored: that is how a shell starts a background process.
 */

const INTERRUPTED_STATUS = 130;
/** Ctrl-C under npm arrives twice at about the same time, from the terminal and from npm. */
const SAME_SIGNAL_MS = 500;
const PARENT_CHECK_INTERVAL_MS = 1_000;

/** Aborted by the first signal. A second SIGINT or SIGTERM ends the process at once. */
export function createStopSignal(process: NodeJS.Process): AbortSignal {
  const stopping = new AbortController();
  let stoppedAt = 0;
  const stop = () => {
    if (stopping.signal.aborted) return;
    stoppedAt = performance.now();
    stopping.abort();
  };
  const stopOrExit = () => {
    if (stopping.signal.aborted && performance.now() - stoppedAt > SAME_SIGNAL_MS) {
      process.exit(INTERRUPTED_STATUS);
    }
    stop();
  };
  process.on('SIGINT', stopOrExit);
  process.on('SIGTERM', stopOrExit);
  // A closing terminal sends it more than once, from the kernel and from the shell, so it never forces an exit.
  process.on('SIGHUP', stop);
  const { ppid: parent } = process;
  if (process.env.npm_lifecycle_event !== undefined)
    setInterval(() => process.ppid !== parent && stop(), PARENT_CHECK_INTERVAL_MS).unref();
  return stopping.signal;
}

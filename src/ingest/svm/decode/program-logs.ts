/**
 * The grammar of a transaction's log lines: which program emitted which data.
 *
 * Everything between `Program <id> invoke [<depth>]` and the `success` or `failed` line of the same program belongs to its
 * frame. Lines are matched as a whole: a program can write any text behind `Program log:` and any base64 behind
 * `Program return:`, and neither may look like the end of a frame.
 *
 * The runtime keeps 10,000 bytes of log text. A line that does not fit is dropped, shorter ones behind it may be kept. A line
 * that begins or ends a frame has at most 75 characters, so a longer line that is kept proves that no frame line was
 * dropped before it. A call that fails ends all calls around it, which fail too.
 */

/** One call of a program. */
export interface Frame {
  readonly program: string;
  /** How many calls of the same program are before it: the place of its instruction among those of the program. */
  readonly order: number;
  /** 1 at the top level. */
  readonly depth: number;
  /** Undefined where the line that would tell was dropped. */
  outcome: 'success' | 'failed' | undefined;
}

export interface EmittedData {
  readonly frame: Readonly<Frame>;
  /** Place of the line in `meta.logMessages`. */
  readonly logIndex: number;
  /** As it stands in the line. */
  readonly base64: string;
}

export interface ProgramLogs {
  /** Empty where the lines do not follow the grammar. */
  readonly emitted: readonly EmittedData[];
  /** Some lines were dropped: what is not there may have happened. */
  readonly isTruncated: boolean;
  /** Why the lines cannot be understood. */
  readonly problem: string | undefined;
}

const ID = '([1-9A-HJ-NP-Za-km-z]{32,44})';
const INVOKE = new RegExp(`^Program ${ID} invoke \\[(\\d{1,3})\\]$`);
const SUCCESS = new RegExp(`^Program ${ID} success$`);
const FAILED = new RegExp(`^Program ${ID} failed: `);
const DATA = /^Program data: ([A-Za-z0-9+/]+={0,2})$/;
const TRUNCATED = 'Log truncated';
const LONGEST_FRAME_LINE = 75;

export function readProgramLogs(lines: readonly string[]): ProgramLogs {
  const emitted: EmittedData[] = [];
  const stack: Frame[] = [];
  const calls = new Map<string, number>();
  let isTruncated = false;
  const reject = (problem: string): ProgramLogs => ({ emitted: [], isTruncated, problem });

  for (const [logIndex, line] of lines.entries()) {
    if (line === TRUNCATED) {
      isTruncated = true;
      continue;
    }
    const isCertain = !isTruncated || line.length > LONGEST_FRAME_LINE;
    if (isCertain && FAILED.test(line)) for (const frame of stack) frame.outcome = 'failed';
    const problem = follow(line, stack, calls);
    // Behind the cut, frame lines may be missing: no longer line follows whose frame could matter.
    if (problem !== undefined && isTruncated) break;
    if (problem !== undefined) return reject(`line ${logIndex} ${problem}`);
    const [, base64] = DATA.exec(line) ?? [];
    const frame = stack.at(-1);
    if (base64 === undefined || !isCertain) continue;
    if (frame === undefined) return reject(`line ${logIndex} has data that no program emitted`);
    emitted.push({ frame, logIndex, base64 });
  }
  if (stack.length > 0 && !isTruncated) {
    return reject(`the lines end within a call of ${stack.at(-1)?.program}`);
  }
  return { emitted, isTruncated, problem: undefined };
}

/** Begins or ends a frame; returns why the line cannot stand here. */
function follow(line: string, stack: Frame[], calls: Map<string, number>): string | undefined {
  const [, invoked, depth] = INVOKE.exec(line) ?? [];
  if (invoked !== undefined) {
    if (Number(depth) !== stack.length + 1) return `begins a call at depth ${depth} below ${stack.length}`;
    const order = calls.get(invoked) ?? 0;
    calls.set(invoked, order + 1);
    stack.push({ program: invoked, order, depth: stack.length + 1, outcome: undefined });
    return undefined;
  }
  const [, succeeded] = SUCCESS.exec(line) ?? [];
  const [, ended = succeeded] = FAILED.exec(line) ?? [];
  if (ended === undefined) return undefined;
  const frame = stack.at(-1);
  if (frame?.program !== ended) return `ends a call of ${ended} within ${frame?.program ?? 'no call'}`;
  if (succeeded !== undefined) frame.outcome = 'success';
  stack.pop();
  return undefined;
}

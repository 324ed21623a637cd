/**
 * Processor time by process, from Linux. Unlike requests a second it hardly depends on what else the machine does:
 * on a busy one it is the figure to trust.
 */
import { readdirSync, readFileSync } from 'node:fs';
import os from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

const TICKS_A_SECOND = 100;

export interface CpuClock {
  /** Microseconds of processor since the start, by name. */
  stop(): Readonly<Record<string, number>>;
}

/** Processes by name; where several do the work, give the one that started the others as `{ family: pid }`. */
export function startCpuClock(processes: Readonly<Record<string, number | { family: number }>>): CpuClock {
  const read = () =>
    new Map(
      Object.entries(processes).map(([name, who]) => [
        name,
        typeof who === 'number' ? ticksOf(who) : ticksOfFamily(who.family),
      ]),
    );
  const before = read();
  return {
    stop: () =>
      Object.fromEntries(
        [...read()].map(([name, ticks]) => [
          name,
          ((ticks - (before.get(name) ?? 0)) * 1e6) / TICKS_A_SECOND,
        ]),
      ),
  };
}

/**
 * Behind the name, which may hold anything, in parentheses: parent is the 2nd field, user and system time the 12th and 13th, those
 * of children that have ended the 14th and 15th.
 */
function fieldsOf(pid: number): readonly string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}

function ticksOf(pid: number): number {
  const fields = fieldsOf(pid);
  return Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
}

/** Of a process and its children, also of those that have ended: PostgreSQL's end with their connections. */
function ticksOfFamily(parent: number): number {
  const ended = fieldsOf(parent).slice(13, 15).map(Number);
  return [...ended, ...familyOf(parent).map(ticksOf)].reduce((sum, ticks) => sum + ticks, 0);
}

/** A process and its children. */
export function familyOf(parent: number): number[] {
  try {
    const all = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
    return [parent, ...all.filter((pid) => fieldsOf(pid)[1] === String(parent))];
  } catch {
    return [parent];
  }
}

/** How much of all processors is in use, from 0 to 1, during a second from now. */
export async function shareInUse(): Promise<number> {
  const read = () =>
    os.cpus().reduce(
      ({ idle, all }, { times }) => ({
        idle: idle + times.idle,
        all: all + Object.values(times).reduce((sum, time) => sum + time, 0),
      }),
      { idle: 0, all: 0 },
    );
  const before = read();
  await delay(1_000);
  const after = read();
  return 1 - (after.idle - before.idle) / (after.all - before.all);
}

/** Parsers for the arguments of the benchmarks' commands. */
import { InvalidArgumentError } from 'commander';

export function parseCount(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It takes a whole number from 1 on.');
  return Number(text);
}

/** Items with commas between them. */
export function listOf<T>(parse: (text: string) => T): (text: string) => T[] {
  return (text) => text.split(',').map((item) => parse(item.trim()));
}

/** One of the parts of a benchmark. */
export function partOf<P extends string>(parts: readonly P[]): (text: string) => P {
  return (text) => {
    const part = parts.find((known) => known === text);
    if (!part) throw new InvalidArgumentError(`The parts are ${parts.join(', ')}.`);
    return part;
  };
}

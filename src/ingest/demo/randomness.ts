/** Deterministic randomness: every random value of the simulation derives from a seed. */
import { createHash } from 'node:crypto';
import { base58 } from '@scure/base';
import { type ChainFamily, parseAddress } from '../../domain/addresses.ts';

/** A stream of random numbers (sfc32). Streams of different seeds or numbers are independent. */
export class Randomness {
  #a: number;
  #b: number;
  #c: number;
  #counter: number;

  constructor(seed: Buffer, number = 0) {
    this.#a = seed.readInt32BE(0);
    this.#b = seed.readInt32BE(4);
    this.#c = seed.readInt32BE(8);
    this.#counter = (number + 1) | 0;
    for (let round = 0; round < 15; round++) this.word();
  }

  /** A whole number below 2^32. */
  word(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** At least 0 and below 1. */
  fraction(): number {
    return this.word() / 2 ** 32;
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  /** A whole number, both ends included. */
  integer(min: number, max: number): number {
    return min + Math.floor(this.fraction() * (max - min + 1));
  }

  between(min: number, max: number): number {
    return min + this.fraction() * (max - min);
  }

  /** Most values are near `min`, a few far from it, like delays of people and machines. */
  mostlyNear(min: number, max: number): number {
    return min + this.fraction() ** 2 * (max - min);
  }

  /** Log-uniform: each order of magnitude between the ends is equally likely. */
  acrossMagnitudes(min: number, max: number): number {
    return min * (max / min) ** this.fraction();
  }

  /** An index below `count`, where the n-th is about n times rarer than the first (Zipf). */
  rank(count: number): number {
    return Math.floor((count + 1) ** this.fraction()) - 1;
  }

  pick<T>(choices: readonly T[]): T {
    const choice = choices[Math.floor(this.fraction() * choices.length)];
    if (choice === undefined) throw new RangeError('The list to pick from is empty.');
    return choice;
  }

  /** Each choice with the probability of its weight. */
  pickWeighted<T>(choices: readonly (readonly [T, number])[]): T {
    let rest = this.fraction() * choices.reduce((total, [, weight]) => total + weight, 0);
    for (const [choice, weight] of choices) {
      rest -= weight;
      if (rest < 0) return choice;
    }
    return this.pick(choices)[0];
  }
}

export type Derivation = ReturnType<typeof createDerivation>;

/** Derives addresses, hashes and random streams from names. The same seed and name always give the same value. */
export function createDerivation(seed: string) {
  const addresses = new Map<string, string>();

  // Node's hash is ten times as fast as one in JavaScript, and every message needs one.
  const digest = (name: string): Buffer => createHash('sha256').update(`${seed}\n${name}`).digest();

  const address = (family: ChainFamily, name: string): string => {
    const key = `${family} address ${name}`;
    const known = addresses.get(key);
    if (known !== undefined) return known;
    const bytes = digest(key);
    const text = family === 'SVM' ? base58.encode(bytes) : `0x${bytes.toString('hex', 0, 20)}`;
    const canonical = parseAddress(text, family)?.text;
    if (canonical === undefined) throw new Error(`The simulation has no addresses of family ${family}.`);
    addresses.set(key, canonical);
    return canonical;
  };

  /**
   * Hashes by number, such as those of a chain's blocks. They are drawn from a random stream, which is several times as
   * fast as hashing: every fact needs some.
   */
  const hashes = (family: ChainFamily, name: string, length = 32): ((number: number) => string) => {
    const hashSeed = digest(`hashes ${name}`);
    const bytes = Buffer.alloc(length);
    return (number) => {
      const stream = new Randomness(hashSeed, number);
      for (let offset = 0; offset < length; offset += 4) bytes.writeUInt32BE(stream.word(), offset);
      return family === 'SVM' ? base58.encode(bytes) : `0x${bytes.toString('hex')}`;
    };
  };

  return {
    digest,
    hexDigest: (name: string) => `0x${digest(name).toString('hex')}`,
    randomness: (name: string) => new Randomness(digest(name)),
    address,
    hashes,
    /** The same for transactions: on SVM chains a signature of 64 bytes takes the place of the hash. */
    transactionHashes: (family: ChainFamily, name: string) =>
      hashes(family, name, family === 'SVM' ? 64 : 32),
  };
}

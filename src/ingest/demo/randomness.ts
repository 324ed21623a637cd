/**
 * Chance that repeats itself: everything random in the simulated world comes from a seed through here.
 */
import { createHash, type Hash } from 'node:crypto';
import { base58 } from '@scure/base';
import { type ChainFamily, parseAddress } from '../../domain/addresses.ts';

/** A stream of random numbers (sfc32). Streams of different seeds or numbers have nothing in common. */
export class Randomness {
  private a: number;
  private b: number;
  private c: number;
  private counter: number;

  constructor(seed: Buffer, number = 0) {
    this.a = seed.readInt32BE(0);
    this.b = seed.readInt32BE(4);
    this.c = seed.readInt32BE(8);
    this.counter = (number + 1) | 0;
    for (let round = 0; round < 15; round++) this.word();
  }

  /** A whole number below 2^32. */
  word(): number {
    const sum = (this.a + this.b + this.counter) | 0;
    this.counter = (this.counter + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = (((this.c << 21) | (this.c >>> 11)) + sum) | 0;
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

  /** Most values lie near `min`, a few far from it: how long people and machines take. */
  mostlyNear(min: number, max: number): number {
    return min + this.fraction() ** 2 * (max - min);
  }

  /** Each order of magnitude between the ends is as likely as the next. */
  acrossMagnitudes(min: number, max: number): number {
    return min * (max / min) ** this.fraction();
  }

  /** An index below `count`, where the n-th is about n times rarer than the first (Zipf). */
  rank(count: number): number {
    return Math.floor((count + 1) ** this.fraction()) - 1;
  }

  pick<T>(choices: readonly T[]): T {
    const choice = choices[Math.floor(this.fraction() * choices.length)];
    if (choice === undefined) throw new RangeError('There is nothing to pick from.');
    return choice;
  }

  /** Each choice as often as its weight says. */
  pickWeighted<T>(choices: readonly (readonly [T, number])[]): T {
    let rest = this.fraction() * choices.reduce((total, [, weight]) => total + weight, 0);
    for (const [choice, weight] of choices) {
      rest -= weight;
      if (rest < 0) return choice;
    }
    return this.pick(choices)[0];
  }
}

export type HashByNumber = (number: number) => string;

/**
 * Names to bytes, in the spelling of a chain family. The same seed and name always give the same address,
 * hash or stream.
 */
export class Derivation {
  private readonly seed: string;
  private readonly addresses = new Map<ChainFamily, Map<string, string>>();

  constructor(seed: string) {
    this.seed = seed;
  }

  digest(name: string): Buffer {
    return this.hash('sha256', name).digest();
  }

  hexDigest(name: string): string {
    return `0x${this.hash('sha256', name).digest('hex')}`;
  }

  randomness(name: string): Randomness {
    return new Randomness(this.digest(name));
  }

  address(family: ChainFamily, name: string): string {
    const known = this.addresses.get(family) ?? new Map<string, string>();
    this.addresses.set(family, known);
    const address = known.get(name) ?? this.newAddress(family, name);
    known.set(name, address);
    return address;
  }

  private newAddress(family: ChainFamily, name: string): string {
    const digest = this.digest(`${family} address ${name}`);
    const text = family === 'SVM' ? base58.encode(digest) : `0x${digest.toString('hex', 0, 20)}`;
    const address = parseAddress(text, family)?.text;
    if (address === undefined) throw new Error(`The simulation knows no addresses of family ${family}.`);
    return address;
  }

  /**
   * Hashes of 32 bytes by number, such as those of a chain's blocks. They are drawn, not hashed: every fact
   * needs some, and drawing is several times as fast.
   */
  hashes(family: ChainFamily, name: string): HashByNumber {
    return this.drawnHashes(family, name, 32);
  }

  /** The same for transactions: on SVM chains a signature stands in for the hash. */
  transactionHashes(family: ChainFamily, name: string): HashByNumber {
    return this.drawnHashes(family, name, family === 'SVM' ? 64 : 32);
  }

  private drawnHashes(family: ChainFamily, name: string, length: number): HashByNumber {
    const seed = this.digest(`hashes ${name}`);
    const bytes = Buffer.alloc(length);
    return (number) => {
      const randomness = new Randomness(seed, number);
      for (let offset = 0; offset < length; offset += 4) bytes.writeUInt32BE(randomness.word(), offset);
      return family === 'SVM' ? base58.encode(bytes) : `0x${bytes.toString('hex')}`;
    };
  }

  // Node's own: ten times as fast as hashing in JavaScript, and every message needs one.
  private hash(algorithm: 'sha256' | 'sha512', name: string): Hash {
    return createHash(algorithm).update(`${this.seed}\n${name}`);
  }
}

/**
 * Names of prepared statements, by which a connection parses and plans each statement once. Clients can ask for more
 * different statements than a server should keep, so both sides are LRU caches: the names of this process
 * (`createStatementNames`) and the prepared statements of each connection (`PreparedStatements`).
 */

/**
 * Prepared statements of each connection. Measured: one takes some 40 kB of the server's memory, so 200 are 8 MB, and a
 * prepared page takes 0.23 instead of 0.59 ms of the database (docs/performance.md).
 */
export const MAX_PREPARED_STATEMENTS = 200;

/** A name is never given to a second text: connections may still have the first one prepared under it. */
export function createStatementNames(limit = MAX_PREPARED_STATEMENTS): (text: string) => string {
  const names = new Map<string, string>();
  let count = 0;
  return (text) => {
    const name = names.get(text) ?? `lanescan_${count++}`;
    // A map keeps the order of insertion: the first entry is the least recently used.
    names.delete(text);
    names.set(text, name);
    if (names.size > limit) names.delete(names.keys().next().value as string);
    return name;
  };
}

/** The prepared statements of one connection. */
export class PreparedStatements {
  /** Names in the order of their last use; true once the server has answered a read of that name. */
  readonly #names = new Map<string, boolean>();
  readonly #limit: number;

  constructor(limit = MAX_PREPARED_STATEMENTS) {
    this.#limit = limit;
  }

  has(name: string): boolean {
    return this.#names.get(name) === true;
  }

  /** Call it before a statement is sent. Returns the name of the statement that is evicted, which has to be closed first. */
  use(name: string): string | undefined {
    const isPrepared = this.#names.get(name) ?? false;
    this.#names.delete(name);
    this.#names.set(name, isPrepared);
    if (this.#names.size <= this.#limit) return undefined;
    const evicted = this.#names.keys().next().value as string;
    this.#names.delete(evicted);
    return evicted;
  }

  /** Call it when the server has prepared the statement and answered. */
  confirm(name: string): void {
    if (this.#names.has(name)) this.#names.set(name, true);
  }
}

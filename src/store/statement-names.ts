/**
 * Names for prepared statements, by which a connection parses and plans each of them once. Clients can ask for more
 * different statements than a server should remember, so names are kept for those used last (LRU): in this process by
 * `createStatementNames`, and on each connection by `PreparedStatements`.
 */

/** On each connection. A prepared statement takes some 40 kB of the server's memory. */
export const NAMED_STATEMENTS = 200;

/** A name is never given to a second text: connections may still know it by the first. */
export function createStatementNames(limit = NAMED_STATEMENTS): (text: string) => string {
  const names = new Map<string, string>();
  let given = 0;
  return (text) => {
    const name = names.get(text) ?? `lanescan_${given++}`;
    // A map keeps the order of insertion: the first entry is the one used longest ago.
    names.delete(text);
    names.set(text, name);
    if (names.size > limit) names.delete(names.keys().next().value as string);
    return name;
  };
}

/** The prepared statements of one connection. */
export class PreparedStatements {
  /** Names in the order of their last use; true once the server has answered one. */
  readonly #names = new Map<string, boolean>();
  readonly #limit: number;

  constructor(limit = NAMED_STATEMENTS) {
    this.#limit = limit;
  }

  has(name: string): boolean {
    return this.#names.get(name) === true;
  }

  /** To be called before a statement is sent; returns the name that the connection has to forget first, if any. */
  use(name: string): string | undefined {
    const isPrepared = this.#names.get(name) ?? false;
    this.#names.delete(name);
    this.#names.set(name, isPrepared);
    if (this.#names.size <= this.#limit) return undefined;
    const oldest = this.#names.keys().next().value as string;
    this.#names.delete(oldest);
    return oldest;
  }

  /** The server has prepared it and answered. */
  confirm(name: string): void {
    if (this.#names.has(name)) this.#names.set(name, true);
  }
}

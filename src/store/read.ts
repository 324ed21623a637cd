/** Runs one statement and returns its rows as objects. */
export type Read = (text: string, values: readonly unknown[]) => Promise<Record<string, unknown>[]>;

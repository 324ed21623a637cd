/** Ranges of blocks, as `index_backlog` and `index_failure` both store them. */

export type RangePurpose = 'routers' | 'history' | 'contracts';

/** Blocks to read, both ends included. */
export interface BlockRange {
  readonly from: number;
  readonly to: number;
  readonly purpose: RangePurpose;
  /** Only logs of these contracts; null: of all. */
  readonly contracts: readonly string[] | null;
}

export interface PendingRange extends BlockRange {
  readonly id: string;
}

export const rangeColumns = 'id, from_block, to_block, purpose, contracts';

export function parseRange(row: Readonly<Record<string, unknown>>): PendingRange {
  return {
    id: row.id as string,
    from: Number(row.from_block),
    to: Number(row.to_block),
    purpose: row.purpose as RangePurpose,
    contracts: row.contracts as readonly string[] | null,
  };
}

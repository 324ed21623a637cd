/** A table with a row for each item. On small screens a row becomes a card, in which every cell has its name. */
import type { ReactNode } from 'react';

export interface Column<T> {
  readonly key: string;
  readonly heading: string;
  /** Instead of the heading, on small screens. */
  readonly name?: string;
  /** Undefined where a cell before spans this one. */
  readonly cell: (item: T) => ReactNode;
  readonly span?: (item: T) => number;
}

interface TableProps<T> {
  /** The first is the heading of its row. */
  readonly columns: readonly Column<T>[];
  readonly items: readonly T[];
  readonly keyOf: (item: T) => string;
  /** The column that the items are sorted by. */
  readonly sorted?: string;
  /** A heading that sorts by its column. */
  readonly headingOf?: (column: Column<T>) => ReactNode;
}

export function Table<T>({ columns, items, keyOf, sorted, headingOf }: TableProps<T>) {
  const [first, ...others] = columns;
  return (
    <table className="ledger">
      <thead>
        <tr>
          {columns.map((column) => (
            <th
              key={column.key}
              scope="col"
              aria-sort={column.key === sorted ? 'descending' : undefined}
              className={`column-${column.key} muted small`}
            >
              {headingOf?.(column) ?? column.heading}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr key={keyOf(item)}>
            <th scope="row">{first?.cell(item)}</th>
            {others.map(({ key, heading, name = heading, cell, span }) => {
              const content = cell(item);
              return content === undefined ? null : (
                <td key={key} className={`column-${key}`} data-name={name} colSpan={span?.(item)}>
                  {content}
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A table with a row for each item. On small screens a row becomes a card, in which every cell has its name. */
import type { ReactNode } from 'react';

export interface Column<T> {
  readonly key: string;
  readonly heading: ReactNode;
  readonly isSorted?: boolean;
  /** On small screens. */
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
}

export function Table<T>({ columns, items, keyOf }: TableProps<T>) {
  const [first, ...others] = columns;
  return (
    <table className="ledger">
      <thead>
        <tr>
          {columns.map(({ key, heading, isSorted = false }) => (
            <th
              key={key}
              scope="col"
              aria-sort={isSorted ? 'descending' : undefined}
              className={`column-${key}`}
            >
              {heading}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr key={keyOf(item)}>
            <th scope="row">{first?.cell(item)}</th>
            {others.map(({ key, name, cell, span }) => {
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

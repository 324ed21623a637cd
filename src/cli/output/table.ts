/** Tables for a terminal: columns with titles, as wide as their cells. */
import { type Colour, cellsOf, fitted, type Paint } from './terminal-text.ts';

export interface Column<Row> {
  readonly title: string;
  /** @param width of the column; infinite while the widths are measured */
  readonly cell: (row: Row, width: number) => string;
  readonly align?: 'right';
  readonly minWidth?: number;
  readonly colours?: (row: Row) => readonly Colour[];
}

const GAP = '  ';

export function columnWidths<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): readonly number[] {
  return columns.map(({ title, minWidth = 0, cell }) =>
    Math.max(cellsOf(title), minWidth, ...rows.map((row) => cellsOf(cell(row, Number.POSITIVE_INFINITY)))),
  );
}

export function tableWidth(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length);
}

interface LineOptions<Row> {
  readonly columns: readonly Column<Row>[];
  readonly widths?: readonly number[];
  readonly paint?: Paint;
  readonly hasTitles?: boolean;
  /** Whether a cell that is wider than its column is cut; otherwise it displaces those behind it. */
  readonly isCut?: boolean;
}

export function tableText<Row>(rows: readonly Row[], options: LineOptions<Row>): string {
  const { columns, widths = columnWidths(columns, rows), paint = (text) => text } = options;
  const { hasTitles = true, isCut = true } = options;
  const lineOf = (row: Row | undefined) =>
    columns
      .map((column, index) => {
        const width = widths[index] ?? 0;
        const cell = row === undefined ? column.title : column.cell(row, width);
        const isOpen = index === columns.length - 1 && column.align === undefined;
        const isWide = !isCut && cellsOf(cell) > width;
        const padded = isOpen || isWide ? cell : fitted(cell, width, column.align);
        const colours = row === undefined ? (['dim'] as const) : (column.colours?.(row) ?? []);
        return padded.trim() === '' ? padded : paint(padded, ...colours);
      })
      .join(GAP)
      .trimEnd();
  return [...(hasTitles ? [undefined] : []), ...rows].map((row) => `${lineOf(row)}\n`).join('');
}

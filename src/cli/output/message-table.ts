/**
 * Messages as a table that fits the width of the terminal.
 *
 * The first page decides the columns, and later pages keep them, so that many pages make one table without being held in
 * memory.
 */
import { statuses } from '../../domain/lifecycle.ts';
import type { Message } from '../../domain/message.ts';
import { type Names, noNames, transferredAmount } from '../../domain/names/message-names.ts';
import { age, counted, printable, shortened } from '../../text/format.ts';
import { networkName } from '../../text/message-words.ts';
import { signedStatus, statusSigns } from './status-signs.ts';
import { type Column, columnWidths, tableText, tableWidth } from './table.ts';
import { ARROW, cellsOf, clipped, clippedLane, type Paint } from './terminal-text.ts';

const MIN_WIDTH = 60;
/** Names of networks come from records; a long one must not displace the other columns. */
const MAX_NETWORK_NAME = 20;
const LONGEST_STATUS = Math.max(...statuses.map((status) => cellsOf(signedStatus(status))));

interface Form {
  readonly id: (id: string) => string;
  /** Absent: no such column. */
  readonly party?: (address: string) => string;
  /** The address of a token; absent: no such column. */
  readonly token?: (address: string) => string;
  readonly action: string;
  /** The lane may be shortened to this width before the next form is tried; absent: not at all. */
  readonly minLane?: number;
}

const whole = (text: string) => text;
const long = (text: string) => shortened(text, 8, 6);
const short = (text: string) => shortened(text, 4, 4);
/** Enough digits for `lanescan show` to find the message. */
const briefId = (text: string) => shortened(text, 6, 4);

/** From the widest to the narrowest, which always fits. */
const forms: readonly Form[] = [
  { id: whole, party: long, token: short, action: 'needs action' },
  { id: long, party: long, token: short, action: 'needs action' },
  { id: long, party: short, token: short, action: 'needs action' },
  { id: long, party: short, token: short, action: '!' },
  { id: long, token: short, action: 'needs action' },
  { id: long, token: short, action: '!' },
  { id: long, action: '!', minLane: 25 },
  { id: briefId, action: '!', minLane: 15 },
];
/** For files and pipes, which are searched for full ids. */
const pipeForm: Form = { id: whole, party: whole, token: whole, action: 'needs action' };

interface TableOptions {
  /** Width of the terminal in cells; null when the output is not a terminal. */
  readonly width: number | null;
  readonly paint: Paint;
  readonly now: number;
  /** More pages will follow, with cells of unknown width. */
  readonly isOpenEnded: boolean;
}

/** Returns the lines of each page, the first with the titles above. */
export function createMessageTable(options: TableOptions) {
  const { width, paint } = options;
  let layout: Layout | undefined;
  let namesOfPage: Names = noNames;
  return (page: readonly Message[], names: Names): string => {
    namesOfPage = names;
    const hasTitles = layout === undefined;
    layout ??= chooseLayout(page, options, () => namesOfPage);
    return tableText(page, { ...layout, paint, hasTitles, isCut: width !== null });
  };
}

interface Layout {
  readonly columns: readonly Column<Message>[];
  readonly widths: readonly number[];
}

function chooseLayout(page: readonly Message[], options: TableOptions, names: () => Names): Layout {
  const { width } = options;
  const measured = (form: Form): Layout => {
    const columns = columnsOf(form, options, names);
    return { columns, widths: columnWidths(columns, page) };
  };
  if (width === null) return measured(pipeForm);
  const room = Math.max(width, MIN_WIDTH);
  let layout = measured(pipeForm);
  for (const form of forms) {
    layout = measured(form);
    const excess = tableWidth(layout.widths) - room;
    if (excess <= 0) return layout;
    const lane = layout.columns.findIndex(({ title }) => title === LANE_TITLE);
    const { minLane = Number.POSITIVE_INFINITY } = form;
    const cut = Math.max((layout.widths[lane] ?? 0) - excess, minLane);
    layout = { ...layout, widths: layout.widths.with(lane, cut) };
    if (cut > minLane) return layout;
  }
  return layout;
}

const LANE_TITLE = 'LANE';

/** @param names of the page that is written */
function columnsOf(
  { id, party, token, action }: Form,
  { now, isOpenEnded, width }: TableOptions,
  names: () => Names,
): readonly Column<Message>[] {
  const columns: Column<Message>[] = [
    {
      title: 'STATUS',
      cell: ({ status }) => signedStatus(status),
      minWidth: isOpenEnded ? LONGEST_STATUS : 0,
      colours: ({ status }) => [statusSigns[status].colour],
    },
    { title: LANE_TITLE, cell: (message, room) => laneCell(message, width === null ? null : room) },
    { title: 'MESSAGE', cell: ({ messageId }) => id(messageId), colours: () => ['bold'] },
  ];
  if (party) {
    columns.push({
      title: 'SENDER → RECEIVER',
      cell: ({ sender, receiver }) => `${party(printable(sender))}${ARROW}${party(printable(receiver))}`,
    });
  }
  if (token) {
    columns.push({
      title: 'TOKENS',
      align: 'right',
      minWidth: isOpenEnded ? MAX_AMOUNT_CELLS + MAX_SHORT_ADDRESS : 0,
      cell: (message) => tokenCell(message, token, names()),
      colours: ({ tokenAmounts }) => (tokenAmounts.length === 0 ? ['dim'] : []),
    });
  }
  columns.push(
    {
      title: 'AGE',
      align: 'right',
      minWidth: isOpenEnded ? 6 : 0,
      cell: ({ sendTimestamp }) => age(now - Date.parse(sendTimestamp)),
      colours: () => ['dim'],
    },
    {
      title: '',
      minWidth: isOpenEnded ? cellsOf(action) : 0,
      cell: ({ readyForManualExecution }) => (readyForManualExecution ? action : ''),
      colours: () => ['yellow', 'bold'],
    },
  );
  return columns;
}

/** Symbols come from contracts; a long one must not displace the other columns. */
const MAX_AMOUNT_CELLS = 18;
/** With the space before it. */
const MAX_SHORT_ADDRESS = cellsOf(` ${short('0x'.padEnd(42, '0'))}`);

/**
 * The first transfer: `5 LINK 0x7798…4789`, with the number of the others. Their number alone where the decimals are not known.
 * A symbol is the claim of a contract, so that the address stays beside it.
 */
function tokenCell(
  { tokenAmounts, sourceNetworkInfo }: Message,
  addressWords: (address: string) => string,
  names: Names,
): string {
  const [first, ...others] = tokenAmounts;
  if (!first) return '–';
  const amount = transferredAmount(first, names.token(sourceNetworkInfo, first.sourceTokenAddress));
  if (amount === null || amount.symbol === null) return String(tokenAmounts.length);
  const more = others.length === 0 ? '' : ` +${others.length}`;
  const words = clipped(`${amount.short} ${printable(amount.symbol)}`, MAX_AMOUNT_CELLS - more.length);
  return `${words} ${addressWords(printable(first.sourceTokenAddress))}${more}`;
}

function laneCell({ sourceNetworkInfo, destNetworkInfo }: Message, width: number | null): string {
  const limit = width === null ? Number.POSITIVE_INFINITY : MAX_NETWORK_NAME;
  const source = clipped(networkName(sourceNetworkInfo), limit);
  const dest = clipped(networkName(destNetworkInfo), limit);
  return clippedLane(source, dest, width ?? Number.POSITIVE_INFINITY);
}

export function tableFooter(shown: number): string {
  return `${counted(shown, 'message')} shown`;
}

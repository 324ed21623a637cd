/** The description of one message for `lanescan show`: state, what to do, and every field. */
import { type Attempt, lastAttempt } from '../../domain/attempts.ts';
import { blockTitle, familyTraits } from '../../domain/chain-families.ts';
import { writtenError } from '../../domain/failures/failure-reason.ts';
import { speakerWords } from '../../domain/failures/speakers.ts';
import { usesVerifiers } from '../../domain/lifecycle.ts';
import type { Message, NetworkInfo, TokenAmount, Verifiers } from '../../domain/message.ts';
import {
  type AmountWords,
  contractRole,
  decimalsSources,
  paidAmount,
  reasonInUnits,
  transferredAmount,
} from '../../domain/names/message-names.ts';
import { grouped } from '../../domain/names/tokens.ts';
import { explorerLink } from '../../domain/networks/block-explorers.ts';
import { age, counted, duration, exactTime, printable, shortened } from '../../text/format.ts';
import { finalityWords, problemOf } from '../../text/message-problem.ts';
import { laneWords, networkName } from '../../text/message-words.ts';
import { abiValues, byteLength, textOf } from '../../text/payload.ts';
import type { RecordNames } from '../commands/records-interface.ts';
import { signedStatus, statusSigns } from './status-signs.ts';
import { cellsOf, clipped, fitted, type Paint, wrapped } from './terminal-text.ts';

const DATA_SHOWN = 64;
const ERROR_SHOWN = 300;
const LOG_LINES_SHOWN = 20;
const LOG_LINE_SHOWN = 160;

interface DescriptionOptions {
  readonly paint: Paint;
  /** Width of the terminal in cells; null when the output is not a terminal. */
  readonly width: number | null;
  readonly now: number;
  readonly attempts: readonly Attempt[];
  readonly names: RecordNames;
  /** Base URL of the server of this store, for commands that ask it. */
  readonly serverUrl: string;
}

/** Lines with a name in front, under a title; those without a text are left out. */
type Section = ReturnType<typeof section>;

function section(
  title: string,
  about: string | null,
  lines: readonly (readonly [name: string, text: string | null])[],
) {
  return { title, about, lines };
}

const NAME_WIDTH = 18;
/** Longer lines of text are hard to read. */
const READING_WIDTH = 100;

export function describeMessage(message: Message, options: DescriptionOptions): string {
  const { paint, width, now, attempts, names } = options;
  const sections = [
    timeline(message, now),
    sourceSection(message, names),
    destSection(message, names),
    ...message.tokenAmounts.map((token, i) => tokenSection(token, i, message, names)),
    ...attempts.map((attempt, i) =>
      attemptSection(attempt, i, attempts.length, message.destNetworkInfo, names),
    ),
    argumentsSection(message),
    ...(message.verifiers ? [verifiersSection(message.verifiers, paint)] : []),
    feesSection(message, names),
    dataSection(message.data),
  ];
  return [
    headline(message, paint),
    ...problemParagraphs(message, options),
    ...sections.map((section) => sectionText(section, paint, width)),
  ].join('\n');
}

function headline(message: Message, paint: Paint): string {
  const { status, version, messageId, readyForManualExecution } = message;
  const words = [
    paint(signedStatus(status), statusSigns[status].colour, 'bold'),
    paint(laneWords(message), 'bold'),
    version === null ? '' : paint(`CCIP ${printable(version)}`, 'dim'),
    readyForManualExecution ? paint('! needs action', 'yellow', 'bold') : '',
  ];
  return `${words.filter((word) => word !== '').join('   ')}\n${messageId}\n`;
}

function sectionText({ title, about, lines }: Section, paint: Paint, width: number | null): string {
  const shown = lines.filter(([, text]) => text !== null);
  const abouts = about ? [`  ${paint(about, 'dim')}`] : [];
  const isWide = about !== null && width !== null && cellsOf(title) + 2 + cellsOf(about) > width;
  return [
    ...(isWide
      ? [
          paint(title, 'bold'),
          // A selector stays with its name.
          ...wrapped(about.replace('selector ', 'selector\u00a0'), width - 2).map(
            (line) => `  ${paint(line.replace('\u00a0', ' '), 'dim')}`,
          ),
        ]
      : [`${paint(title, 'bold')}${abouts.join('')}`]),
    ...shown.flatMap(([name, text]) =>
      valueLines(text ?? '', width).map(
        (line, index) => `  ${paint(fitted(index === 0 ? name : '', NAME_WIDTH), 'dim')}${line}`,
      ),
    ),
    '',
  ].join('\n');
}

/** Sentences are wrapped under their beginning. What has colours, or no spaces, is left as it is. */
function valueLines(text: string, width: number | null): readonly string[] {
  const cells = (width ?? Number.POSITIVE_INFINITY) - NAME_WIDTH - 2;
  if (cellsOf(text) <= cells || cells < 20 || text.includes('\u001b')) return [text];
  return wrapped(text.replace(/ {2,}/g, ' '), cells);
}

function problemParagraphs(message: Message, options: DescriptionOptions): string[] {
  const { paint, serverUrl, attempts, names } = options;
  const reason = lastAttempt(attempts)?.reason ?? undefined;
  const problem = problemOf(message, { reason });
  if (problem === null) return [];
  const { status, destNetworkInfo, receiptTransactionHash } = message;
  const dest = networkName(destNetworkInfo);
  const why = reason ? `${printable(reasonInUnits(reason, destNetworkInfo, names))} ` : '';
  const receipt =
    receiptTransactionHash === null ? 'the execution' : `transaction ${printable(receiptTransactionHash)}`;
  const fix =
    problem.advice ??
    `Look at ${receipt} on ${dest} for the reason, and fix the receiver if it is the cause.`;
  const moreGas =
    status === 'FAILED' && 'gasLimit' in message.extraArgs ? ' Add --gas-limit for more gas.' : '';
  const withoutServer = [
    'Or with the proof from the chains alone:',
    `$ ccip-cli manual-exec ${printable(message.sendTransactionHash)} --log-index ${message.sendLogIndex} --rpc $SOURCE_RPC --rpc $DEST_RPC`,
  ];
  const todo = [
    ...(status === 'FAILED' ? [fix] : []),
    ...(problem.canBeExecuted
      ? [
          `Execute it manually, with the key of your wallet in USER_KEY and an RPC endpoint of ${dest} in DEST_RPC.${moreGas} ` +
            '`lanescan serve` provides the proof:',
          `$ ccip-cli manual-exec ${message.messageId} --api ${serverUrl} --rpc $DEST_RPC`,
          // Verifications of 2.0 are not on the chains before the execution.
          ...(usesVerifiers(message.version) ? [] : withoutServer),
        ]
      : []),
  ];
  const width = Math.min(options.width ?? READING_WIDTH, READING_WIDTH) - 2;
  const paragraph = (title: string, lines: readonly string[]) => {
    // A command is not wrapped, so that it can be copied.
    const shown = lines.flatMap((line) => (line.startsWith('$') ? [`  ${line}`] : wrapped(line, width)));
    return `${paint(title, 'yellow', 'bold')}\n${shown.map((line) => `  ${line}\n`).join('')}`;
  };
  return [
    paragraph(problem.title, [`${problem.whatHappened} ${why}${problem.consequence}`]),
    paragraph('What to do', todo),
  ];
}

function timeline(message: Message, now: number): Section {
  const { sendTimestamp, receiptTimestamp, deliveryTime, status } = message;
  const sinceMs = now - Date.parse(sendTimestamp);
  const end = status === 'FAILED' ? 'Failed' : 'Executed';
  const after = deliveryTime === null ? '' : `   after ${duration(deliveryTime)}`;
  return section('Timeline', null, [
    ['Sent', `${exactTime(sendTimestamp)}   ${age(sinceMs)}${sinceMs < 0 ? '' : ' ago'}`],
    [end, receiptTimestamp === null ? 'not yet' : `${exactTime(receiptTimestamp)}${after}`],
    ['Finality', finalityWords(message)],
  ]);
}

/** An address with the operator's label behind it. */
function labelled(network: NetworkInfo, address: string, names: RecordNames): string {
  const label = names.label(network, address);
  return `${printable(address)}${label === undefined ? '' : `   ${printable(label)}`}`;
}

/** The page of a transaction in the network's block explorer; null without a block explorer. */
function linkTo(network: NetworkInfo, transaction: string | null, names: RecordNames): string | null {
  const urls = names.explorerUrls(network.chainSelector);
  const link = transaction && explorerLink(urls, 'transaction', transaction);
  return link && printable(link);
}

function sourceSection(message: Message, names: RecordNames): Section {
  const network = message.sourceNetworkInfo;
  return section('Source', networkWords(network), [
    ['Sender', labelled(network, message.sender, names)],
    ['Origin', message.origin === message.sender ? 'the sender' : labelled(network, message.origin, names)],
    ['Transaction', printable(message.sendTransactionHash)],
    ['  link', linkTo(network, message.sendTransactionHash, names)],
    [blockTitle(network.chainFamily), `${message.sendBlockNumber}, log ${message.sendLogIndex}`],
    ['On-ramp', labelled(network, message.onramp, names)],
    ['Router', message.routerAddress && labelled(network, message.routerAddress, names)],
    [
      'Sequence number',
      `${message.sequenceNumber}${message.nonce === null ? '' : `, nonce ${message.nonce}`}`,
    ],
  ]);
}

function destSection(message: Message, names: RecordNames): Section {
  const network = message.destNetworkInfo;
  return section('Destination', networkWords(network), [
    ['Receiver', labelled(network, message.receiver, names)],
    [
      'Transaction',
      message.receiptTransactionHash === null ? 'none yet' : printable(message.receiptTransactionHash),
    ],
    ['  link', linkTo(network, message.receiptTransactionHash, names)],
    ['Executor', message.executor && printable(message.executor.address)],
    ['Off-ramp', message.offramp === undefined ? null : printable(message.offramp)],
  ]);
}

function attemptSection(
  attempt: Attempt,
  index: number,
  total: number,
  network: NetworkInfo,
  names: RecordNames,
): Section {
  const { outcome, at, transactionHash, blockNumber, caller, gasUsed, reason, removedAt } = attempt;
  const lines = attempt.logs?.slice(-LOG_LINES_SHOWN) ?? [];
  const errors = reason ? [...reason.wrappers, ...(reason.error ? [reason.error] : [])] : [];
  const title = total === 1 ? 'Execution attempt' : `Execution attempt ${index + 1} of ${total}`;
  return section(title, `${signedStatus(outcome)}${at === null ? '' : `   ${exactTime(at)}`}`, [
    ['Removed', removedAt && `by a reorganisation, ${exactTime(removedAt)}: this attempt no longer counts`],
    ['Transaction', transactionHash && printable(transactionHash)],
    ['  link', linkTo(network, transactionHash, names)],
    [blockTitle(network.chainFamily), blockNumber === null ? null : String(blockNumber)],
    ['Sent by', caller && labelled(network, caller, names)],
    [familyTraits(network.chainFamily).gasTitle, gasUsed && grouped(gasUsed)],
    ['Reason', reason && printable(reasonInUnits(reason, network, names))],
    ['Said by', reason && speakerWords[reason.saidBy]],
    // From the outside in.
    ...errors.map(
      (error, place) =>
        [place === 0 ? 'Error' : '', clipped(printable(writtenError(error)), ERROR_SHOWN)] as const,
    ),
    ['Transaction error', attempt.transactionError && printable(attempt.transactionError)],
    ...lines.map(
      (line, place) => [place === 0 ? 'Log' : '', clipped(printable(line), LOG_LINE_SHOWN)] as const,
    ),
  ]);
}

function networkWords(network: NetworkInfo): string {
  const { name, chainFamily, chainId, chainSelector } = network;
  const parts = [
    networkName(network),
    printable(name),
    `${chainFamily} ${printable(chainId)}`,
    `selector ${chainSelector}`,
  ];
  return [...new Set(parts)].join(' · ');
}

function exactLine(amount: string, words: AmountWords | null): string {
  return words === null
    ? `${amount} smallest units`
    : `${amount} smallest units, ${words.decimals} decimals ${decimalsSources[words.source]}`;
}

/** The address, and what its contract calls itself. */
function tokenWords(network: NetworkInfo, address: string, names: RecordNames): string {
  const { symbol = null, name = null, source } = names.token(network, address) ?? {};
  const called = [symbol, name === null ? null : JSON.stringify(name)]
    .filter((word) => word !== null)
    .join(' ');
  if (called === '') return labelled(network, address, names);
  return `${labelled(network, address, names)}   ${source === 'operator' ? '' : 'calls itself '}${printable(called)}`;
}

function tokenSection(token: TokenAmount, index: number, message: Message, names: RecordNames): Section {
  const { sourceNetworkInfo, destNetworkInfo } = message;
  const total = message.tokenAmounts.length;
  const words = transferredAmount(token, names.token(sourceNetworkInfo, token.sourceTokenAddress));
  const amount = words && `${words.exact}${words.symbol === null ? '' : ` ${printable(words.symbol)}`}`;
  return section(total === 1 ? 'Token' : `Token ${index + 1} of ${total}`, null, [
    ['Amount', amount ?? exactLine(token.amount, null)],
    ['  exact', amount && exactLine(token.amount, words)],
    ['Source token', tokenWords(sourceNetworkInfo, token.sourceTokenAddress, names)],
    ['Source pool', labelled(sourceNetworkInfo, token.sourcePoolAddress, names)],
    ['Dest. token', tokenWords(destNetworkInfo, token.destTokenAddress, names)],
    ['Dest. gas', token.destGasAmount && grouped(token.destGasAmount)],
    ['Extra data', token.extraData && clipped(printable(token.extraData), DATA_SHOWN)],
  ]);
}

function argumentsSection({ extraArgs }: Message): Section {
  const order = extraArgs.allowOutOfOrderExecution ? 'out of order allowed' : 'in the order of the sender';
  if ('gasLimit' in extraArgs)
    return section('Execution', null, [
      ['Gas limit', grouped(extraArgs.gasLimit)],
      ['Order', order],
    ]);
  const { computeUnits, accountIsWritableBitmap, tokenReceiver, accounts } = extraArgs;
  return section('Execution', null, [
    ['Compute units', grouped(computeUnits)],
    ['Order', order],
    ['Token receiver', printable(tokenReceiver)],
    ['Writable bitmap', printable(accountIsWritableBitmap)],
    ['Accounts', accounts.length === 0 ? 'none' : String(accounts.length)],
    ...accounts.map((account, i) => [`  ${i + 1}`, printable(account)] as const),
  ]);
}

function verifiersSection({ items, optionalThreshold }: Verifiers, paint: Paint): Section {
  const done = (isRequired: boolean) =>
    items.filter((item) => item.isRequired === isRequired && item.status === 'COMPLETED').length;
  const required = items.filter(({ isRequired }) => isRequired).length;
  const optional = items.length - required;
  const about = [`${done(true)} of ${required} required done`];
  if (optional > 0) about.push(`${done(false)} of ${optional} optional done, ${optionalThreshold} needed`);
  const lines = items.flatMap(
    ({ metadata, isRequired, status, verification, sourceAddress, destAddress }) => {
      const sign = status === 'COMPLETED' ? paint('✓ completed', 'green') : paint('○ pending', 'blue');
      const at = verification === null ? '' : ` ${exactTime(verification.timestamp)}`;
      const name = clipped(printable(metadata.name), NAME_WIDTH - 2);
      return [
        [name, `${sign}${at}   ${isRequired ? 'required' : 'optional'}`],
        ['  source', printable(sourceAddress)],
        ['  destination', printable(destAddress)],
        ['  data', verification && shortened(verification.data, DATA_SHOWN, 8)],
      ] as const;
    },
  );
  return section('Verifiers', about.join(' · '), lines);
}

function feesSection(message: Message, names: RecordNames): Section {
  const { tokenAddress, totalAmount, items = [] } = message.fees.fixedFeesDetails;
  const token = names.token(message.sourceNetworkInfo, tokenAddress);
  const words = paidAmount(totalAmount, token);
  const shown = (amount: string) => paidAmount(amount, token)?.exact ?? amount;
  const width = Math.max(shown(totalAmount).length, ...items.map(({ amount }) => shown(amount).length));
  const about =
    words === null
      ? `in smallest units of ${printable(tokenAddress)}`
      : `in ${tokenWords(message.sourceNetworkInfo, tokenAddress, names)}`;
  return section('Fees', about, [
    ['Total', `${shown(totalAmount).padStart(width)}${words?.symbol ? ` ${printable(words.symbol)}` : ''}`],
    ['  exact', words && exactLine(totalAmount, words)],
    ...items.map(({ feeType, amount, contractAddress }) => {
      const role = contractRole(message, contractAddress, names);
      const to = `${printable(contractAddress)}${role === undefined ? '' : `   ${printable(role)}`}`;
      return [
        `  ${feeType.toLowerCase().replace('_', ' ')}`,
        `${shown(amount).padStart(width)}   to ${to}`,
      ] as const;
    }),
  ]);
}

function dataSection(data: string | null): Section {
  if (data === null) return section('Data', null, [['', 'not known']]);
  const bytes = byteLength(data);
  if (bytes === 0) return section('Data', null, [['', 'none']]);
  const text = readableText(data);
  return section('Data', counted(bytes, 'byte'), [
    ['Hex', shortened(data, DATA_SHOWN, 8)],
    ['Text', text && JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text)],
  ]);
}

/** The data as text, plain or as one ABI-encoded string; null where it is not readable text. */
function readableText(data: string): string | null {
  const values = abiValues(data);
  const [value] = values ?? [];
  const text = values?.length === 1 && value?.type === 'string' ? value.text : textOf(data);
  const line = text?.replace(/[\n\t]/g, ' ') ?? '';
  return printable(line) === line ? text : null;
}

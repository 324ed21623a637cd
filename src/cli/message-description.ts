/** The description of one message for `lanescan show`: state, what to do, and every field. */
import type { Attempt } from '../domain/attempts.ts';
import { blockTitle } from '../domain/block-noun.ts';
import { writtenError } from '../domain/failures/failure-reason.ts';
import { usesVerifiers } from '../domain/lifecycle.ts';
import {
  type Message,
  type NetworkInfo,
  requestedFinality,
  type TokenAmount,
  type Verifiers,
} from '../domain/message.ts';
import { laneWords, networkName, statusSigns, statusWords } from './message-words.ts';
import {
  age,
  clipped,
  counted,
  duration,
  fitted,
  type Paint,
  printable,
  shortened,
  wrapped,
} from './terminal-text.ts';

const DATA_SHOWN = 64;
const ERROR_SHOWN = 300;

export interface DescriptionOptions {
  readonly paint: Paint;
  /** Width of the terminal in cells; null when the output is not a terminal. */
  readonly width: number | null;
  readonly now: number;
  readonly attempts: readonly Attempt[];
  /** Base URL of the server of this store, for commands that ask it. */
  readonly serverUrl: string;
}

/** Lines with a name in front, under a title. */
interface Section {
  readonly title: string;
  readonly about?: string;
  readonly lines: readonly (readonly [name: string, text: string | null])[];
}

const NAME_WIDTH = 18;
/** Longer lines of text are hard to read. */
const READING_WIDTH = 100;

/** The whole record, laid out for reading. */
export function describeMessage(message: Message, options: DescriptionOptions): string {
  const { paint, width, now, attempts } = options;
  const sections = [
    timeline(message, now),
    sourceSection(message),
    destSection(message),
    ...message.tokenAmounts.map((token, i) => tokenSection(token, i, message.tokenAmounts.length)),
    ...attempts.map((attempt, i) =>
      attemptSection(attempt, i, attempts.length, message.destNetworkInfo.chainFamily),
    ),
    argumentsSection(message),
    ...(message.verifiers ? [verifiersSection(message.verifiers, paint)] : []),
    feesSection(message),
    dataSection(message.data),
  ];
  return [
    headline(message, paint),
    ...advice(message, options, Math.min(width ?? READING_WIDTH, READING_WIDTH)),
    ...sections.map((section) => sectionText(section, paint)),
  ].join('\n');
}

function headline(message: Message, paint: Paint): string {
  const { status, version, messageId, readyForManualExecution } = message;
  const words = [
    paint(statusWords(status), statusSigns[status].colour, 'bold'),
    paint(laneWords(message), 'bold'),
    version === null ? '' : paint(`CCIP ${printable(version)}`, 'dim'),
    readyForManualExecution ? paint('! needs action', 'yellow', 'bold') : '',
  ];
  return `${words.filter((word) => word !== '').join('   ')}\n${messageId}\n`;
}

function sectionText({ title, about, lines }: Section, paint: Paint): string {
  const shown = lines.filter(([, text]) => text !== null);
  return [
    `${paint(title, 'bold')}${about ? `  ${paint(about, 'dim')}` : ''}`,
    ...shown.map(([name, text]) => `  ${paint(fitted(name, NAME_WIDTH), 'dim')}${text}`),
    '',
  ].join('\n');
}

/** For a message that needs manual execution: what happened, and what to do. */
function advice(message: Message, options: DescriptionOptions, width: number): string[] {
  const { paint, serverUrl, attempts } = options;
  const reason = attempts.at(-1)?.reason ?? null;
  const { status, readyForManualExecution, destNetworkInfo, extraArgs, receiptTransactionHash } = message;
  if (status !== 'FAILED' && !readyForManualExecution) return [];
  const dest = networkName(destNetworkInfo);
  const limit =
    'gasLimit' in extraArgs
      ? `gas limit of ${extraArgs.gasLimit}`
      : `compute units of ${extraArgs.computeUnits}`;
  const receipt =
    receiptTransactionHash === null ? 'the execution' : `transaction ${printable(receiptTransactionHash)}`;
  const tokens = message.tokenAmounts.length > 0 ? ' Its tokens wait until it is executed.' : '';
  const meaning =
    status === 'FAILED'
      ? `It reached ${dest}, but its execution there failed${reason ? `. ${printable(reason.text)}` : `: the receiver reverted, or the ${limit} did not suffice.`}${tokens}`
      : `It reached ${dest}, but it was not executed there in the time allowed.${tokens}`;
  const moreGas = status === 'FAILED' && 'gasLimit' in extraArgs ? ' (and --gas-limit for more gas)' : '';
  const todo = [
    ...(status === 'FAILED'
      ? [
          reason
            ? printable(reason.advice)
            : `Look at ${receipt} on ${dest} for the reason, and fix the receiver if it is the cause.`,
        ]
      : []),
    ...(readyForManualExecution
      ? [
          `Execute it manually; any wallet on ${dest} can do it${moreGas}. Its key is in USER_KEY, an RPC endpoint in ` +
            'DEST_RPC, and `lanescan serve` provides the proof:',
          `$ ccip-cli manual-exec ${message.messageId} --api ${serverUrl} --rpc $DEST_RPC`,
          ...withoutServer(message),
        ]
      : ['It is not ready for manual execution yet; try again later.']),
  ];
  const paragraph = (title: string, lines: readonly string[]) => {
    // A command is not wrapped, so that it can be copied.
    const shown = lines.flatMap((line) => (line.startsWith('$') ? [`  ${line}`] : wrapped(line, width - 2)));
    return `${paint(title, 'yellow', 'bold')}\n${shown.map((line) => `  ${line}\n`).join('')}`;
  };
  return [
    paragraph(status === 'FAILED' ? 'What went wrong' : 'What it waits for', [meaning]),
    paragraph('What to do', todo),
  ];
}

/** Verifications of 2.0 are not on the chains before the execution. */
function withoutServer({ version, sendTransactionHash, sendLogIndex }: Message): readonly string[] {
  if (usesVerifiers(version)) return [];
  return [
    'Or with the proof from the chains alone:',
    `$ ccip-cli manual-exec ${printable(sendTransactionHash)} --log-index ${sendLogIndex} --rpc $SOURCE_RPC --rpc $DEST_RPC`,
  ];
}

function timeline(message: Message, now: number): Section {
  const { sendTimestamp, receiptTimestamp, deliveryTime, status } = message;
  const end = status === 'FAILED' ? 'Failed' : 'Executed';
  const after = deliveryTime === null ? '' : `   after ${duration(deliveryTime)}`;
  return {
    title: 'Timeline',
    lines: [
      ['Sent', `${clock(sendTimestamp)}   ${sinceText(now - Date.parse(sendTimestamp))}`],
      [end, receiptTimestamp === null ? 'not yet' : `${clock(receiptTimestamp)}${after}`],
      ['Finality', finalityWords(requestedFinality(message))],
    ],
  };
}

function finalityWords(requested: ReturnType<typeof requestedFinality>): string {
  if (requested === 'finalized') return 'the source chain’s own';
  return requested === 'safe'
    ? 'the safe head of the source chain'
    : counted(requested, 'block confirmation');
}

function sinceText(ms: number): string {
  return ms < 0 ? age(ms) : `${age(ms)} ago`;
}

function clock(timestamp: string): string {
  return `${timestamp.slice(0, 10)} ${timestamp.slice(11, 19)} UTC`;
}

function sourceSection(message: Message): Section {
  return {
    title: 'Source',
    about: networkWords(message.sourceNetworkInfo),
    lines: [
      ['Sender', printable(message.sender)],
      ['Origin', message.origin === message.sender ? 'the sender' : printable(message.origin)],
      ['Transaction', printable(message.sendTransactionHash)],
      [
        blockTitle(message.sourceNetworkInfo.chainFamily),
        `${message.sendBlockNumber}, log ${message.sendLogIndex}`,
      ],
      ['On-ramp', printable(message.onramp)],
      ['Router', message.routerAddress && printable(message.routerAddress)],
      [
        'Sequence number',
        `${message.sequenceNumber}${message.nonce === null ? '' : `, nonce ${message.nonce}`}`,
      ],
    ],
  };
}

function destSection(message: Message): Section {
  return {
    title: 'Destination',
    about: networkWords(message.destNetworkInfo),
    lines: [
      ['Receiver', printable(message.receiver)],
      [
        'Transaction',
        message.receiptTransactionHash === null ? 'none yet' : printable(message.receiptTransactionHash),
      ],
      ['Executor', message.executor && printable(message.executor.address)],
      ['Off-ramp', message.offramp === undefined ? null : printable(message.offramp)],
    ],
  };
}

function attemptSection(attempt: Attempt, index: number, total: number, family: string): Section {
  const { outcome, at, transactionHash, blockNumber, caller, gasUsed, reason } = attempt;
  const errors = reason ? [...reason.wrappers, ...(reason.error ? [reason.error] : [])] : [];
  return {
    title: total === 1 ? 'Execution attempt' : `Execution attempt ${index + 1} of ${total}`,
    about: `${statusWords(outcome)}${at === null ? '' : `   ${clock(at)}`}`,
    lines: [
      ['Transaction', transactionHash && printable(transactionHash)],
      [blockTitle(family), blockNumber === null ? null : String(blockNumber)],
      ['Sent by', caller && printable(caller)],
      ['Gas used', gasUsed],
      ['Reason', reason && printable(reason.text)],
      [
        'Error',
        errors.length === 0 ? null : clipped(printable(errors.map(writtenError).join(' > ')), ERROR_SHOWN),
      ],
    ],
  };
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

function tokenSection(token: TokenAmount, index: number, total: number): Section {
  return {
    title: total === 1 ? 'Token' : `Token ${index + 1} of ${total}`,
    lines: [
      ['Amount', `${token.amount} smallest units`],
      ['Source token', printable(token.sourceTokenAddress)],
      ['Source pool', printable(token.sourcePoolAddress)],
      ['Dest. token', printable(token.destTokenAddress)],
      ['Dest. gas', token.destGasAmount],
      ['Extra data', token.extraData && clipped(printable(token.extraData), DATA_SHOWN)],
    ],
  };
}

function argumentsSection({ extraArgs }: Message): Section {
  const order = extraArgs.allowOutOfOrderExecution ? 'out of order allowed' : 'in the order of the sender';
  if ('gasLimit' in extraArgs) {
    return {
      title: 'Execution',
      lines: [
        ['Gas limit', extraArgs.gasLimit],
        ['Order', order],
      ],
    };
  }
  const { computeUnits, accountIsWritableBitmap, tokenReceiver, accounts } = extraArgs;
  return {
    title: 'Execution',
    lines: [
      ['Compute units', String(computeUnits)],
      ['Order', order],
      ['Token receiver', printable(tokenReceiver)],
      ['Writable bitmap', printable(accountIsWritableBitmap)],
      ['Accounts', accounts.length === 0 ? 'none' : String(accounts.length)],
      ...accounts.map((account, i) => [`  ${i + 1}`, printable(account)] as const),
    ],
  };
}

function verifiersSection({ items, optionalThreshold }: Verifiers, paint: Paint): Section {
  const done = (isRequired: boolean) =>
    items.filter((item) => item.isRequired === isRequired && item.status === 'COMPLETED').length;
  const required = items.filter(({ isRequired }) => isRequired).length;
  const optional = items.length - required;
  const about = [`${done(true)} of ${required} required done`];
  if (optional > 0) about.push(`${done(false)} of ${optional} optional done, ${optionalThreshold} needed`);
  return {
    title: 'Verifiers',
    about: about.join(' · '),
    lines: items.flatMap(({ metadata, isRequired, status, verification, sourceAddress, destAddress }) => {
      const sign = status === 'COMPLETED' ? paint('✓ completed', 'green') : paint('○ pending', 'blue');
      const at = verification === null ? '' : ` ${clock(verification.timestamp)}`;
      return [
        [
          clipped(printable(metadata.name), NAME_WIDTH - 2),
          `${sign}${at}   ${isRequired ? 'required' : 'optional'}`,
        ],
        ['  source', printable(sourceAddress)],
        ['  destination', printable(destAddress)],
        ['  data', verification && shortened(verification.data, DATA_SHOWN, 8)],
      ] as const;
    }),
  };
}

function feesSection({ fees: { fixedFeesDetails } }: Message): Section {
  const { tokenAddress, totalAmount, items = [] } = fixedFeesDetails;
  const width = Math.max(totalAmount.length, ...items.map(({ amount }) => amount.length));
  return {
    title: 'Fees',
    about: `in smallest units of ${printable(tokenAddress)}`,
    lines: [
      ['Total', totalAmount.padStart(width)],
      ...items.map(
        ({ feeType, amount, contractAddress }) =>
          [`  ${feeNames[feeType]}`, `${amount.padStart(width)}   to ${printable(contractAddress)}`] as const,
      ),
    ],
  };
}

const feeNames = {
  VERIFIER: 'verifier',
  EXECUTOR: 'executor',
  TOKEN_POOL: 'token pool',
  NETWORK: 'network',
} as const;

function dataSection(data: string | null): Section {
  if (data === null) return { title: 'Data', lines: [['', 'not known']] };
  const bytes = Buffer.from(data.slice(2), 'hex');
  if (bytes.length === 0) return { title: 'Data', lines: [['', 'none']] };
  const text = textIn(bytes);
  return {
    title: 'Data',
    about: counted(bytes.length, 'byte'),
    lines: [
      ['Hex', shortened(data, DATA_SHOWN, 8)],
      ['Text', text && JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text)],
    ],
  };
}

/** The bytes as text, plain or as an ABI-encoded string; null where they are not text. */
function textIn(bytes: Buffer): string | null {
  return readableText(abiString(bytes) ?? bytes);
}

function abiString(bytes: Buffer): Buffer | undefined {
  if (bytes.length < 96 || bytes.length % 32 !== 0) return undefined;
  const word = (index: number) => BigInt(`0x${bytes.subarray(index * 32, index * 32 + 32).toString('hex')}`);
  const length = word(1);
  if (
    word(0) !== 32n ||
    length === 0n ||
    length > BigInt(bytes.length - 64) ||
    BigInt(bytes.length - 64) - length >= 32n
  ) {
    return undefined;
  }
  return bytes.subarray(64, 64 + Number(length));
}

function readableText(bytes: Buffer): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    const line = text.replace(/[\n\t]/g, ' ');
    return printable(line) === line ? text : null;
  } catch {
    return null;
  }
}

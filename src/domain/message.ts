/**
 * The Message record and its wire form.
 *
 * The types come from the schema, but the schema is not loaded here: only the documentation needs it at run time, and
 * loading it takes longer than most commands run.
 */
import type { ExtensionFields, Message, MessageSummary } from './records/message-schema.ts';

export type {
  ExtensionFields,
  Fees,
  Message,
  MessageSummary,
  NetworkInfo,
  TokenAmount,
  Verifier,
  Verifiers,
} from './records/message-schema.ts';

/** The name of a verifier that has none. */
export const UNNAMED_VERIFIER = 'Verifier';

/** The nine fields of `view=summary`, in wire order. The type makes the list complete. */
export const summaryKeys = keysOf<keyof MessageSummary>({
  messageId: true,
  origin: true,
  sender: true,
  receiver: true,
  status: true,
  sourceNetworkInfo: true,
  destNetworkInfo: true,
  sendTransactionHash: true,
  sendTimestamp: true,
});

/** The other fields of the contract, in wire order. The type makes the list complete. */
export const detailKeys = keysOf<Exclude<keyof Message, keyof MessageSummary | keyof ExtensionFields>>({
  nonce: true,
  sequenceNumber: true,
  onramp: true,
  routerAddress: true,
  sendBlockNumber: true,
  sendLogIndex: true,
  receiptTransactionHash: true,
  receiptTimestamp: true,
  deliveryTime: true,
  data: true,
  tokenAmounts: true,
  extraArgs: true,
  readyForManualExecution: true,
  version: true,
  finality: true,
  verifiers: true,
  executor: true,
  fees: true,
});

/** Fields that came after the contract, in wire order. They are absent where they are not known. */
export const extensionKeys = keysOf<keyof ExtensionFields>({
  offramp: true,
  encodedMessage: true,
  reportedStatus: true,
});

function keysOf<Key extends string>(table: Readonly<Record<Key, true>>): readonly Key[] {
  return Object.keys(table) as Key[];
}

const contractKeys: readonly (keyof Message)[] = [...summaryKeys, ...detailKeys];
const definedKeys: ReadonlySet<string> = new Set([...contractKeys, ...extensionKeys]);
/** Where the details begin. JSON cannot have these characters inside a string. */
const DETAILS_MARK = `,"${detailKeys[0]}":`;

/**
 * The wire form of a record. The fields of the summary come first, so that the summary view is a prefix of the stored text
 * and needs neither a second copy nor parsing: `summaryLength` characters, closed with `}`. Members that the contract does
 * not define come last.
 */
export function wireRecord(message: Message) {
  const json = JSON.stringify(isInWireOrder(message) ? message : inWireOrder(message));
  return { json, summaryLength: codePointLength(json.slice(0, summaryEnd(json, message))) };
}

function summaryEnd(json: string, { sourceNetworkInfo, destNetworkInfo }: Message): number {
  // A network with further members may have one with the name of the first detail.
  let end = 0;
  for (const network of [sourceNetworkInfo, destNetworkInfo]) {
    if (Object.keys(network).length > NETWORK_FIELDS) {
      const text = JSON.stringify(network);
      end = json.indexOf(text, end) + text.length;
    }
  }
  return json.indexOf(DETAILS_MARK, end);
}

/** Fields of a network in the contract, and its display name. */
const NETWORK_FIELDS = 5;

/** Most records of an import are: copying them would take a third of the time of writing them. */
function isInWireOrder(message: Message): boolean {
  let place = 0;
  for (const key in message) if (key !== contractKeys[place++]) return false;
  return place === contractKeys.length;
}

function inWireOrder(message: Message): Partial<Message> {
  const ordered: Record<string, unknown> = {};
  for (const key of contractKeys) ordered[key] = message[key];
  for (const key of extensionKeys) if (message[key] !== undefined) ordered[key] = message[key];
  return { ...ordered, ...sourceMembers(message) };
}

/** Members that only a source defines, by name. */
export function sourceMembers(message: Message): Readonly<Record<string, unknown>> {
  const keys = Object.keys(message).filter((key) => !definedKeys.has(key));
  return Object.fromEntries(keys.sort().map((key) => [key, message[key as keyof Message]]));
}

/** PostgreSQL counts code points, JavaScript UTF-16 units. */
function codePointLength(text: string): number {
  return text.length - (text.match(/[\ud800-\udbff]/g)?.length ?? 0);
}

/** What the sender asked the source chain for: its own finality, the safe head, or a number of block confirmations. */
export function requestedFinality({ finality, extraArgs }: Message): 'finalized' | 'safe' | number {
  if (finality > 0) return finality;
  const config = 'requestedFinalityConfig' in extraArgs ? Number(extraArgs.requestedFinalityConfig) : 0;
  return (config & SAFE_FLAG) === 0 ? 'finalized' : 'safe';
}

const SAFE_FLAG = 0x10000;

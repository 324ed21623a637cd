/** The Message record and its wire form. Keys and types come from the schema. */
import { ExtensionFields, Message, MessageSummary } from './records/message-schema.ts';

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

/** The nine fields of `view=summary`, in wire order. */
export const summaryKeys = keysOf(MessageSummary);
/** The fields behind the contract, in wire order. */
export const extensionKeys = keysOf(ExtensionFields);
/** The fields of the contract in wire order, then those that came after it, which are absent where they are not known. */
const messageKeys = keysOf(Message);
const definedKeys: ReadonlySet<string> = new Set(messageKeys);
export const contractKeys = messageKeys.filter(
  (key): key is Exclude<keyof Message, keyof ExtensionFields> => !(key in ExtensionFields.properties),
);

function keysOf<Key extends string>(schema: { readonly properties: Readonly<Record<Key, unknown>> }) {
  return Object.keys(schema.properties) as Key[];
}

/** Where the details begin. JSON cannot have these characters inside a string. */
const DETAILS_MARK = `,"${contractKeys[summaryKeys.length]}":`;

/**
 * The wire form of a record. The fields of the summary come first, so that the summary view is a prefix of the stored text
 * and needs neither a second copy nor parsing: `summaryLength` characters, closed with `}`. Members that the contract does
 * not define come last.
 */
export function wireRecord(message: Message) {
  const json = JSON.stringify(isInWireOrder(message) ? message : inWireOrder(message));
  const summary = json.slice(0, summaryEnd(json, message));
  // PostgreSQL counts code points, JavaScript UTF-16 units.
  const summaryLength = summary.length - (summary.match(/[\ud800-\udbff]/g)?.length ?? 0);
  return { json, summaryLength };
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

/** Most records are: copying them would take a third of the time of writing them. Those without members of a source alone. */
function isInWireOrder(message: Message): boolean {
  let place = 0;
  for (const key in message) {
    while (place >= contractKeys.length && place < messageKeys.length && key !== messageKeys[place]) place++;
    if (key !== messageKeys[place++]) return false;
  }
  return place >= contractKeys.length;
}

function inWireOrder(message: Message): object {
  const ordered = Object.fromEntries(messageKeys.map((key) => [key, message[key]]));
  return { ...ordered, ...sourceMembers(message) };
}

/** Members that only a source defines, by name. */
export function sourceMembers(message: Message): Readonly<Record<string, unknown>> {
  const keys = Object.keys(message).filter((key) => !definedKeys.has(key));
  return Object.fromEntries(keys.sort().map((key) => [key, message[key as keyof Message]]));
}

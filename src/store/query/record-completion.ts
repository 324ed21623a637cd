/**
 * Members that a message in flight has not in its record, but the index knows: the off-ramp of its lane before the commit
 * names it, and the encoded message of a record that was stored by an older version of the program.
 *
 * Only single messages are completed, and only while they may have to be executed: the search sends records as they are
 * stored.
 */
import { parseAddress } from '../../domain/addresses.ts';
import type { Sent } from '../../domain/facts.ts';
import { usesVerifiers } from '../../domain/lifecycle.ts';
import { type Message, wireRecord } from '../../domain/message.ts';
import type { Read } from '../reads/reads.ts';
import { addressColumn, storedSelector } from '../write/message-row.ts';

/** The beginning of the member in the text of a record. */
export const OFFRAMP_MEMBER = '"offramp":"';

/** A test on the text, because nearly every record needs no completion and no parsing. */
export function lacksOfframp(record: string): boolean {
  return !record.includes(OFFRAMP_MEMBER);
}

/** The record with its off-ramp, and with the encoded message that is stored beside it; as it is where nothing is known. */
export async function completeRecord(read: Read, record: string): Promise<string> {
  const message = JSON.parse(record) as Message;
  const members = (await readMaterial(read, message)) ?? (await readOfframp(read, message));
  return members ? wireRecord({ ...message, ...members }).json : record;
}

/** What the send event of 2.0 said. Parsed here, because PostgreSQL's JSON does not take every text. */
async function readMaterial(
  read: Read,
  { messageId, version }: Message,
): Promise<Pick<Message, 'offramp' | 'encodedMessage'> | undefined> {
  if (!usesVerifiers(version)) return undefined;
  const [row] = await read(`select body from fact where message_id = $1 and kind = 'Sent' limit 1`, [
    Buffer.from(messageId.slice(2), 'hex'),
  ]);
  const { execution } = row ? (JSON.parse(row.body as string) as Sent) : {};
  if (!execution || !('encodedMessage' in execution)) return undefined;
  const { offramp, encodedMessage } = execution;
  return { offramp, encodedMessage };
}

/**
 * The off-ramp of the lane's latest commit or, before the first one, the only one of the lane's version that the destination
 * has for it. Off-ramps up to 1.5 serve one on-ramp, which is stored with them; later ones serve a whole source chain.
 */
async function readOfframp(
  read: Read,
  { sourceNetworkInfo, destNetworkInfo, onramp, version }: Message,
): Promise<Pick<Message, 'offramp'> | undefined> {
  const source = storedSelector(sourceNetworkInfo.chainSelector);
  const dest = storedSelector(destNetworkInfo.chainSelector);
  const [row] = await read(
    `select coalesce(
       (select body::json ->> 'offramp' from lane_fact
        where source_selector = $1 and dest_selector = $2 and onramp = $3 order by to_sequence desc limit 1),
       (select min(contract) from index_registration
        join index_contract on index_contract.network = index_registration.network and address = contract
        where index_registration.network = $2 and remote = $1 and role = 'offRamp'
          and coalesce(body::json ->> 'version', $4) like $4 || '%'
          and coalesce(lower(body::json ->> 'onRamp'), $5) = $5
        having count(*) = 1)) as offramp`,
    [
      source,
      dest,
      Buffer.from(addressColumn(onramp, sourceNetworkInfo.chainFamily), 'hex'),
      majorAndMinor(version),
      onramp.toLowerCase(),
    ],
  );
  const told = row?.offramp as string | null | undefined;
  const offramp = told && parseAddress(told, destNetworkInfo.chainFamily)?.text;
  return offramp ? { offramp } : undefined;
}

/** Of a lane, such as `1.6.`: patches have the same off-ramps. */
function majorAndMinor(version: string | null): string {
  return version === null ? '' : `${version.split('.', 2).join('.')}.`;
}

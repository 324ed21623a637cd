/** The rows of a message as `store.apply` would leave them, in COPY's text format, without the cost of making them so. */
import { hash } from 'node:crypto';
import { statusRank } from '../../src/domain/lifecycle.ts';
import { BEGINNING_BYTES } from '../../src/store/sql.ts';
import { sortKey } from '../../src/store/write/message-row.ts';
import { hexOf, lanes, type World } from './world.ts';

export interface Rows {
  readonly record: string;
  readonly message: string;
  readonly token: string;
  readonly history: string;
}

export const MESSAGE_COLUMNS =
  'message_id, sort_key, sent_at, position, source_selector, dest_selector, sequence_number, delivery_ms, finality, ' +
  'summary_length, status, ready, is_snapshot, sender, receiver, origin, onramp, send_transaction, ' +
  'receipt_transaction, digest, record';
export const TOKEN_COLUMNS =
  'message_id, token_index, sort_key, source_selector, dest_selector, source_token, dest_token, source_pool, ' +
  'sender_beginning, receiver_beginning';
export const HISTORY_COLUMNS =
  'position, message_id, recorded_at, change, status, previous_status, ready, removed_record, occurred_at, network, ' +
  'block_number, transaction';

export const RECORDED_AT = '2026-11-01T00:00:00.000Z';

const PAYLOADS = 4_096;
/** Every other one is short: transfers of tokens carry little else. */
const payloads = Array.from({ length: PAYLOADS }, (_, n) => `0x${hexOf(n, 5, n % 2 === 0 ? 48 : 8)}`);

const bytes = (text: string) => `\\\\x${text.slice(2)}`;
const beginning = (address: string) => bytes(address.slice(0, 2 + 2 * BEGINNING_BYTES));

/** Rows one after the other: sequence numbers count up on each lane, positions over all. */
export function createRowWriter(world: World): (n: number) => Rows {
  const numbers = new Map<number, number>();
  const stored = lanes.map(({ source, dest }) => ({
    source: BigInt.asIntN(64, BigInt(source.chainSelector)).toString(),
    dest: BigInt.asIntN(64, BigInt(dest.chainSelector)).toString(),
    networks: `"sourceNetworkInfo":${JSON.stringify(source)},"destNetworkInfo":${JSON.stringify(dest)}`,
  }));

  return (n) => {
    const envelope = world.envelope(n);
    const lane = lanes[envelope.lane];
    const selectors = stored[envelope.lane];
    if (!lane || !selectors) throw new Error(`No lane ${envelope.lane}`);
    const sequence = (numbers.get(envelope.lane) ?? 0) + 1;
    numbers.set(envelope.lane, sequence);
    const sentAt = new Date(envelope.sentAtMs).toISOString();
    const sort = sortKey(envelope.sentAtMs, envelope.messageId.slice(2));
    const deliveryMs = envelope.receiptTransaction === null ? null : deliveryOf(n);
    const summary =
      `{"messageId":"${envelope.messageId}","origin":"${envelope.origin}","sender":"${envelope.sender}",` +
      `"receiver":"${envelope.receiver}","status":"${envelope.status}",${selectors.networks},` +
      `"sendTransactionHash":"${envelope.sendTransaction}","sendTimestamp":"${sentAt}"`;
    const token = envelope.token === null ? null : world.token(envelope.lane, envelope.token);
    const amounts =
      token === null
        ? ''
        : `{"sourceTokenAddress":"${token.source}","destTokenAddress":"${token.dest}",` +
          `"sourcePoolAddress":"${token.pool}","amount":"${(n % 9_000) + 1}000000000000000000","extraData":"0x12",` +
          `"destGasAmount":"90000"}`;
    const receiptAt =
      deliveryMs === null ? 'null' : `"${new Date(envelope.sentAtMs + deliveryMs).toISOString()}"`;
    const record =
      `${summary},"nonce":"0","sequenceNumber":"${sequence}","onramp":"${lane.onramp}",` +
      `"routerAddress":"${lane.router}","sendBlockNumber":${20_000_000 + n},"sendLogIndex":${n % 400},` +
      `"receiptTransactionHash":${envelope.receiptTransaction === null ? 'null' : `"${envelope.receiptTransaction}"`},` +
      `"receiptTimestamp":${receiptAt},"deliveryTime":${deliveryMs},` +
      `"data":"${payloads[token === null ? n % PAYLOADS : (n % PAYLOADS) | 1]}","tokenAmounts":[${amounts}],` +
      `"extraArgs":{"gasLimit":"200000","allowOutOfOrderExecution":true},"readyForManualExecution":${envelope.isReady},` +
      `"version":"1.6.0","finality":0,"verifiers":null,"executor":null,` +
      `"fees":{"fixedFeesDetails":{"tokenAddress":"${lane.feeToken}","totalAmount":"${100_000 + (n % 77_777)}"}}}`;
    const position = n + 1;
    const status = statusRank(envelope.status);
    /** Where and when the status was reached, as far as the record alone shows. */
    const causeOf = () => {
      if (envelope.receiptTransaction !== null && deliveryMs !== null) {
        const at = new Date(envelope.sentAtMs + deliveryMs).toISOString();
        return `${at}\t${selectors.dest}\t\\N\t${bytes(envelope.receiptTransaction)}`;
      }
      if (envelope.status !== 'SENT') return '\\N\t\\N\t\\N\t\\N';
      return `${sentAt}\t${selectors.source}\t${20_000_000 + n}\t${bytes(envelope.sendTransaction)}`;
    };
    return {
      record,
      message: `${bytes(envelope.messageId)}\t${sort}\t${sentAt}\t${position}\t${selectors.source}\t${selectors.dest}\t${sequence}\t${
        deliveryMs ?? '\\N'
      }\t0\t${summary.length}\t${status}\t${envelope.isReady ? 't' : 'f'}\tt\t${bytes(envelope.sender)}\t${bytes(
        envelope.receiver,
      )}\t${bytes(envelope.origin)}\t${bytes(lane.onramp)}\t${bytes(envelope.sendTransaction)}\t${
        envelope.receiptTransaction === null ? '\\N' : bytes(envelope.receiptTransaction)
      }\t\\\\x${hash('sha256', record, 'hex').slice(0, 32)}\t${record}\n`,
      token:
        token === null
          ? ''
          : `${bytes(envelope.messageId)}\t0\t${sort}\t${selectors.source}\t${selectors.dest}\t${bytes(token.source)}\t${bytes(token.dest)}\t${bytes(token.pool)}\t${beginning(envelope.sender)}\t${beginning(envelope.receiver)}\n`,
      history: `${position}\t${bytes(envelope.messageId)}\t${RECORDED_AT}\t1\t${status}\t\\N\t${
        envelope.isReady ? 't' : 'f'
      }\t\\N\t${causeOf()}\n`,
    };
  };
}

function deliveryOf(n: number): number {
  return 60_000 + (n % 1_200) * 1_000;
}

/** A process of `settled.ts`: computes the rows of a chunk of settled messages, and writes them when it is their turn. */
import type pg from 'pg';
import { writeChainState } from '../../src/store/ledger/chain-state.ts';
import { columnsOf } from '../../src/store/sql.ts';
import { copyRows } from '../../src/store/write/copy.ts';
import { storedSelector } from '../../src/store/write/message-row.ts';
import { answerOrders } from '../child.ts';
import { openClient } from '../data/database.ts';
import { createLives, type Lives, type ProtocolVersion } from './lives.ts';
import { type Settled, settle, shiftPositions, type Total } from './settled-rows.ts';
import { stateAt } from './timeline.ts';

export interface Chunk {
  readonly from: number;
  readonly to: number;
  /** The last sequence numbers of the lanes before it. */
  readonly sequences: readonly number[];
}

export type SettledOrder =
  | {
      readonly kind: 'compute';
      readonly url: string;
      /** Of the whole world. */
      readonly messages: number;
      readonly version: ProtocolVersion | undefined;
      readonly chunk: Chunk;
    }
  /** What was computed last. All chunks before are written. */
  | { readonly kind: 'write' };

let client: pg.Client | undefined;
let lives: Lives | undefined;
let computed: (Settled & { readonly chunk: Chunk }) | undefined;

answerOrders(async (order: SettledOrder): Promise<void> => {
  if (order.kind === 'compute') {
    const { url, messages, version, chunk } = order;
    client ??= await openClient(url);
    lives ??= createLives(messages, version);
    computed = { chunk, ...settle(lives, stateAt(chunk.from, chunk.sequences), chunk.to) };
    return;
  }
  if (!client || !computed) throw new Error('Nothing has been computed.');
  const { chunk, tables, changes, totals, networks } = computed;
  await client.query('begin');
  const { rows: before } = await client.query('select position from store for update');
  const position = BigInt(before[0].position);
  for (const table of tables) {
    const { columns, rows } = shiftPositions(table, position);
    await copyRows(client, table.table, columns, rows, (row) => row);
  }
  await writeTotals(client, totals);
  for (const { network, ...held } of networks) await writeChainState(client, storedSelector(network), held);
  await client.query('update store set position = $1', [position + BigInt(changes)]);
  await client.query('update bench.fill set written = $1', [chunk.to]);
  await client.query('commit');
  computed = undefined;
});

/** Without counts: these come from the messages when all are there. */
async function writeTotals(client: pg.Client, totals: readonly Total[]): Promise<void> {
  await client.query(
    `with counted as (
       select * from unnest($1::bigint[], $2::bigint[], $3::date[], $4::smallint[], $5::boolean[])
         as c (source, dest, day, status, ready)),
     days as (insert into day_total select distinct day, source, dest, status, 0 from counted on conflict do nothing)
     insert into lane_total select distinct source, dest, status, ready, 0 from counted on conflict do nothing`,
    columnsOf(totals, 'source', 'dest', 'day', 'status', 'ready'),
  );
}

// The process that gives the orders stops when a chunk is complete.
process.on('SIGINT', () => undefined);

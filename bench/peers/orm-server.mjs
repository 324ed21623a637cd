/**
 * The server that many would write first: an ORM, `select *`, pages by OFFSET, and an answer made from each row.
 *
 * Drizzle, because it is widely used, installs without binaries, and is known for adding little to the driver: what it
 * loses, the design loses, and not the library.
 *
 *     DATABASE_URL=… node orm-server.mjs 8081
 */
import { and, desc, eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import {
  bigint,
  boolean,
  customType,
  integer,
  numeric,
  pgTable,
  smallint,
  text,
  timestamp,
} from 'drizzle-orm/pg-core';
import fastify from 'fastify';
import pg from 'pg';

const bytea = customType({ dataType: () => 'bytea' });

const message = pgTable('message', {
  messageId: bytea('message_id').primaryKey(),
  sentAt: timestamp('sent_at', { withTimezone: true }).notNull(),
  position: bigint('position', { mode: 'bigint' }).notNull(),
  sourceSelector: bigint('source_selector', { mode: 'bigint' }).notNull(),
  destSelector: bigint('dest_selector', { mode: 'bigint' }).notNull(),
  sequenceNumber: numeric('sequence_number').notNull(),
  deliveryMs: bigint('delivery_ms', { mode: 'number' }),
  finality: bigint('finality', { mode: 'number' }).notNull(),
  summaryLength: integer('summary_length').notNull(),
  status: smallint('status').notNull(),
  ready: boolean('ready').notNull(),
  isSnapshot: boolean('is_snapshot').notNull(),
  sender: bytea('sender').notNull(),
  receiver: bytea('receiver').notNull(),
  origin: bytea('origin').notNull(),
  onramp: bytea('onramp').notNull(),
  sendTransaction: bytea('send_transaction').notNull(),
  receiptTransaction: bytea('receipt_transaction'),
  digest: bytea('digest').notNull(),
  record: text('record').notNull(),
});

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10, options: '-c timezone=UTC' });
const db = drizzle(pool);
const app = fastify({ logger: false });

const selector = (text) => BigInt.asIntN(64, BigInt(text));
const bytes = (text) => Buffer.from(text.slice(2), 'hex');

app.get('/ready', async () => 'ready');

app.get('/messages', async ({ query }) => {
  const { sender, sourceChainSelector, destChainSelector, page = '1', limit = '20' } = query;
  const rows = await db
    .select()
    .from(message)
    .where(
      and(
        sender === undefined ? undefined : eq(message.sender, bytes(sender)),
        sourceChainSelector === undefined
          ? undefined
          : eq(message.sourceSelector, selector(sourceChainSelector)),
        destChainSelector === undefined ? undefined : eq(message.destSelector, selector(destChainSelector)),
      ),
    )
    .orderBy(desc(message.sentAt), desc(message.messageId))
    .limit(Number(limit))
    .offset((Number(page) - 1) * Number(limit));
  return {
    // What the columns hold is told from the columns, the rest from the record.
    data: rows.map((row) => ({
      ...JSON.parse(row.record),
      messageId: `0x${row.messageId.toString('hex')}`,
      sendTimestamp: row.sentAt.toISOString(),
      sequenceNumber: row.sequenceNumber,
      deliveryTime: row.deliveryMs,
      finality: row.finality,
      readyForManualExecution: row.ready,
    })),
    page: Number(page),
  };
});

await app.listen({ port: Number(process.argv[2]), host: '127.0.0.1' });

import { onchainTable } from 'ponder';

export const message = onchainTable('message', (t) => ({
  id: t.hex().primaryKey(),
  sequenceNumber: t.bigint().notNull(),
  sender: t.hex().notNull(),
  blockNumber: t.bigint().notNull(),
  transactionHash: t.hex().notNull(),
}));

export const root = onchainTable('root', (t) => ({
  id: t.hex().primaryKey(),
  first: t.bigint().notNull(),
  last: t.bigint().notNull(),
}));

export const execution = onchainTable('execution', (t) => ({
  id: t.hex().primaryKey(),
  state: t.integer().notNull(),
  transactionHash: t.hex().notNull(),
}));

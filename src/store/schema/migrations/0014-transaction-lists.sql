-- Chains that list the transactions of an address, newest first, instead of answering for ranges of blocks.

-- A list is continued below a transaction that is known: one for each stretch that was read.
create table index_anchor (
  network bigint not null,
  address text not null,
  block_number bigint not null,
  transaction_hash text not null,
  primary key (network, address, block_number)
);

-- A failed message is not always open to everybody at once: on Solana only when the lane's delay has passed. The index
-- of messages without a failure stays: to drop it would lock out readers.
create index message_awaiting_opening on message (dest_selector, sent_at)
  where status in (2, 3, 6) and not ready;

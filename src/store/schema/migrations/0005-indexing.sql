-- Indexing chains: who works on which network, how far it has come, and what is still owed.
--
-- Checkpoint, backlog and failures are separate records: a range that cannot be read stays on the ledger of
-- failures until it can, while the checkpoint and the backlog move on.

-- One row a network. A lease by the database's clock lets one worker at a time write for it.
create table index_network (
  selector bigint primary key,
  holder text,
  lease_until timestamptz,
  -- The first block of the history that is wanted; null until it is known.
  start_block bigint,
  -- Where following the head began: from here on every block has been read, unless the backlog says otherwise.
  followed_from bigint,
  -- The earliest event of a router that was found so far.
  first_router_block bigint,
  -- Logs of contracts that no router ever named: seen, not believed.
  foreign_logs bigint not null default 0
);

-- Blocks that may still be abandoned, by height, and the newest final one below them. The highest is the checkpoint:
-- whatever is above it has not been read.
create table index_block (
  network bigint not null,
  number bigint not null,
  hash text not null,
  primary key (network, number)
);

-- Contracts that are believed: a router of the configuration, or named by one that is believed.
create table index_contract (
  network bigint not null,
  address text not null,
  named_by text,
  -- The block that named it, where it could still be abandoned.
  block_hash text,
  body text not null,
  primary key (network, address)
);

-- Ranges of blocks that have not been read, both ends included; each is worked from its upper end down.
create table index_backlog (
  network bigint not null,
  id bigint generated always as identity,
  from_block bigint not null,
  to_block bigint not null check (to_block >= from_block),
  -- What it is for: the history of the routers, everybody's history, or that of contracts which were named late.
  purpose text not null check (purpose in ('routers', 'history', 'contracts')),
  -- Only logs of these; null: of everybody.
  contracts text[],
  primary key (network, id)
);

-- Ranges that could not be read. They are tried again for ever, less and less often.
create table index_failure (
  network bigint not null,
  id bigint generated always as identity,
  from_block bigint not null,
  to_block bigint not null check (to_block >= from_block),
  purpose text not null check (purpose in ('routers', 'history', 'contracts')),
  contracts text[],
  reason text not null,
  failures integer not null default 1,
  first_failed_at timestamptz not null default now(),
  retry_at timestamptz not null,
  primary key (network, id)
);

-- Logs of genuine contracts that could not be understood, kept whole for a version that can.
create table index_unreadable (
  network bigint not null,
  block_hash text not null,
  log_index integer not null,
  block_number bigint not null,
  transaction_hash text not null,
  address text not null,
  topics text[] not null,
  data text not null,
  reason text not null,
  noticed_at timestamptz not null default now(),
  primary key (network, block_hash, log_index)
);

-- What is to be asked on a network about single messages that were sent to it.
create table index_chore (
  message_id bytea not null,
  network bigint not null,
  kind text not null check (kind in ('policy', 'verification')),
  due_at timestamptz not null default now(),
  attempts integer not null default 0,
  primary key (message_id, network, kind)
);
create index index_chore_due on index_chore (network, kind, due_at);

-- Committed or blessed, and not yet open to everybody: the few that a passed threshold opens.
create index message_awaiting_execution on message (dest_selector, sent_at)
  where status in (2, 3) and not ready;

alter table network_progress
  add column start_block bigint,
  -- Blocks of the history that are still to be read.
  add column owed_blocks bigint not null default 0,
  add column failed_ranges integer not null default 0,
  add column failed_blocks bigint not null default 0,
  add column oldest_failure_at timestamptz,
  add column unreadable_logs bigint not null default 0,
  add column foreign_logs bigint not null default 0;

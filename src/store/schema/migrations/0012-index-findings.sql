-- What an indexer found out about the completeness of a network, beyond the ranges of blocks that it has read.

-- Ramps that a router names, and the chain at their other end.
create table index_registration (
  network bigint not null,
  contract text not null,
  remote bigint not null,
  role text not null,
  -- The lowest block with an event of the router that names it; null while only the router's views do.
  block_number bigint,
  primary key (network, contract, remote)
);

-- Numbers that contracts count by themselves, to compare the records with: messages sent, messages committed.
create table index_counter (
  source_selector bigint not null,
  dest_selector bigint not null,
  onramp bytea not null,
  kind text not null check (kind in ('sent', 'committed')),
  last_number numeric(20) not null,
  -- Whether everything from number 1 on is expected; false where indexing starts at a configured block or time.
  is_whole boolean not null,
  checked_at timestamptz not null,
  primary key (source_selector, dest_selector, onramp, kind)
);

-- Open findings: contradictions between chain and records, contracts that are not known, filters that are wrong.
create table index_finding (
  network bigint not null,
  kind text not null,
  subject text not null,
  -- For operators: it may name hosts.
  detail text not null,
  -- What the chain family needs to look at it again.
  body text,
  found_at timestamptz not null default now(),
  -- Endpoints from which the blocks were read since, in vain.
  tried text[] not null default '{}',
  attempts integer not null default 0,
  retry_at timestamptz,
  primary key (network, kind, subject)
);

-- On some chains log indexes count anew in each transaction.
alter table index_unreadable
  drop constraint index_unreadable_pkey,
  add primary key (network, block_hash, transaction_hash, log_index);

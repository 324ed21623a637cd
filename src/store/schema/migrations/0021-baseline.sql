-- The schema at a glance. It stands for migrations 1 to 21, which databases made before it have one by one; later ones
-- are files beside this one, numbered from 22.
--
-- The message id is the distribution key of every table that grows: each of their unique constraints contains it, so that
-- the schema can be sharded by it without a change.
--
-- Addresses, hashes and ids are canonical bytes. Chain selectors are unsigned 64-bit integers stored in a bigint, two's
-- complement; uint64() shows them as people know them. Columns are in the order in which they were added.

create function uint64(stored bigint) returns numeric
  language sql immutable parallel safe
  return case when stored < 0 then stored::numeric + 18446744073709551616 else stored::numeric end;

-- ---- The store

-- One row: what this store is, and the position of its latest change. Every writer locks it, so that positions have no
-- gaps and become visible in order.
create table store (
  singleton boolean primary key default true check (singleton),
  position bigint not null default 0,
  simulated boolean not null,
  created_at timestamptz not null default now()
);

-- The position counts changes of records. A search also finds messages by facts that change no record (a further attempt, a
-- second commit, a blessing), so response caches and replicas need a number that grows with every write.
create table store_revision (
  singleton boolean primary key default true check (singleton),
  revision bigint not null default 0
);
insert into store_revision default values;

-- On a cluster a transaction becomes visible on its nodes at different moments. Its positions are therefore assigned in the
-- transaction, and published (`store.position`) in a second one, when all rows are visible. One row on a cluster, none on
-- one node.
create table publication (
  singleton boolean primary key default true check (singleton),
  -- The last position that a writer has assigned.
  assigned_position bigint not null,
  -- False from the commit of a writer until its rows were seen on all nodes.
  is_published boolean not null default true
);

-- The secret key of the cursors' MAC: one row of 32 random bytes.
--
-- It is in the database so that all servers on it agree, and so that cursors survive restarts, backups and replication.
-- The table is separate because every write rewrites the row of `store`, while the key never changes.
--
-- gen_random_uuid() takes its bits from PostgreSQL's cryptographically strong source, 122 of them in each UUID. SHA-256
-- condenses 366 into a key of 256. Core PostgreSQL has no function for random bytes; pgcrypto is an extension.
create table cursor_key (
  singleton boolean primary key default true check (singleton),
  key bytea not null check (octet_length(key) = 32)
    default sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
);
insert into cursor_key default values;

-- Writers declare the schema they know, and the database rejects those that know an older one.
--
-- A writer that was started before an upgrade does not see the new schema: it would write rows without what the new
-- schema derives from them. Every connection of Lanescan therefore sets `lanescan.schema` to the number of the latest
-- migration it knows. After every upgrade, `migrate` puts this trigger on each table, with the number of the schema as its
-- argument.
--
-- The class of the error, 57 (operator intervention), makes older programs show the message instead of a stack trace,
-- and keep what they have to write.
create function refuse_older_writer() returns trigger language plpgsql as $$
declare
  declared text := nullif(current_setting('lanescan.schema', true), '');
begin
  if coalesce(declared, '0')::integer < tg_argv[0]::integer then
    raise exception using
      errcode = '57L01',
      message = format(
        'the database was upgraded by a newer Lanescan (schema %s; this program knows %s), nothing was written: upgrade this program',
        tg_argv[0], coalesce(declared, 'an older one')),
      detail = tg_argv[0],
      hint = format('To change rows by hand, first run: set lanescan.schema = %L', tg_argv[0]);
  end if;
  return null;
end
$$;

-- ---- Messages

create table message (
  message_id bytea not null primary key,
  sent_at timestamptz not null,
  -- Position in the history of the latest change of this message; also its version.
  position bigint not null,
  source_selector bigint not null,
  dest_selector bigint not null,
  sequence_number numeric(20) not null,
  -- Milliseconds from send to execution; null until executed.
  delivery_ms bigint,
  finality bigint not null,
  summary_length integer not null,
  status smallint not null,
  ready boolean not null,
  -- True where only snapshots are known: the record itself is then their join, and `fact` has no row.
  is_snapshot boolean not null,
  sender bytea not null,
  receiver bytea not null,
  origin bytea not null,
  onramp bytea not null,
  send_transaction bytea not null,
  receipt_transaction bytea,
  -- SHA-256 of the record, first 16 bytes: shows a change without reading the record.
  digest bytea not null,
  -- The wire JSON, ready-made. Its first summary_length characters, closed with }, are the summary view.
  record text not null
)
-- Records of usual size stay in the row as they are: reading them costs neither a second look-up nor unpacking.
with (toast_tuple_target = 8160);

-- Two filters that are each common but seldom hold together are the hard case: read through the index of one of them, a
-- page examines row after row that the other rejects. So the rows of every such pair are adjacent in an index for it. A hash
-- of the pair takes a third of the space of the addresses themselves, and no other index can be mistaken for it. Null stands
-- for what is not part of a key.
create function search_key(sender bytea, receiver bytea, source bigint, dest bigint) returns bigint
  language sql immutable parallel safe
  return hash_record_extended(row(sender, receiver, source, dest), 0);

-- Each filter together with the order of the result: a page is read from one index, without a sort.
create index message_newest on message (sent_at desc, message_id desc);
create index message_sender on message (sender, sent_at desc, message_id desc);
create index message_receiver on message (receiver, sent_at desc, message_id desc);
-- Where the origin is the sender itself, the sender finds it.
create index message_origin on message (origin, sent_at desc, message_id desc) where origin <> sender;
create index message_source on message (source_selector, sent_at desc, message_id desc);
create index message_dest on message (dest_selector, sent_at desc, message_id desc);
create index message_lane on message (source_selector, dest_selector, sent_at desc, message_id desc);
create index message_status on message (status, sent_at desc, message_id desc);
create index message_send_transaction on message (send_transaction, sent_at desc, message_id desc);
create index message_receipt_transaction on message (receipt_transaction, sent_at desc, message_id desc)
  where receipt_transaction is not null;
create index message_actors on message
  (search_key(sender, receiver, null, null), sent_at desc, message_id desc);
create index message_sender_lane on message
  (search_key(sender, null, source_selector, dest_selector), sent_at desc, message_id desc);
create index message_receiver_lane on message
  (search_key(null, receiver, source_selector, dest_selector), sent_at desc, message_id desc);
create index message_actors_lane on message
  (search_key(sender, receiver, source_selector, dest_selector), sent_at desc, message_id desc);

-- The same for messages that are ready for manual execution, and for those that failed (status 6): few, and often
-- searched for.
create index message_ready on message (sent_at desc, message_id desc) where ready;
create index message_ready_sender on message (sender, sent_at desc, message_id desc) where ready;
create index message_ready_receiver on message (receiver, sent_at desc, message_id desc) where ready;
create index message_ready_source on message (source_selector, sent_at desc, message_id desc) where ready;
create index message_ready_dest on message (dest_selector, sent_at desc, message_id desc) where ready;
create index message_ready_lane on message
  (source_selector, dest_selector, sent_at desc, message_id desc) where ready;
create index message_ready_actors on message
  (search_key(sender, receiver, null, null), sent_at desc, message_id desc) where ready;
create index message_ready_sender_lane on message
  (search_key(sender, null, source_selector, dest_selector), sent_at desc, message_id desc) where ready;
create index message_ready_receiver_lane on message
  (search_key(null, receiver, source_selector, dest_selector), sent_at desc, message_id desc) where ready;
create index message_ready_actors_lane on message
  (search_key(sender, receiver, source_selector, dest_selector), sent_at desc, message_id desc) where ready;
-- No message should be both ready and successful, but a record that says so must be found.
create index message_ready_success on message (sent_at desc, message_id desc) where ready and status = 7;

create index message_failed_sender on message (sender, sent_at desc, message_id desc) where status = 6;
create index message_failed_receiver on message (receiver, sent_at desc, message_id desc) where status = 6;
create index message_failed_source on message (source_selector, sent_at desc, message_id desc) where status = 6;
create index message_failed_dest on message (dest_selector, sent_at desc, message_id desc) where status = 6;
create index message_failed_lane on message
  (source_selector, dest_selector, sent_at desc, message_id desc) where status = 6;
create index message_failed_actors on message
  (search_key(sender, receiver, null, null), sent_at desc, message_id desc) where status = 6;
create index message_failed_sender_lane on message
  (search_key(sender, null, source_selector, dest_selector), sent_at desc, message_id desc) where status = 6;
create index message_failed_receiver_lane on message
  (search_key(null, receiver, source_selector, dest_selector), sent_at desc, message_id desc) where status = 6;
create index message_failed_actors_lane on message
  (search_key(sender, receiver, source_selector, dest_selector), sent_at desc, message_id desc) where status = 6;

-- Status 0 to 5: sent, and neither failed nor succeeded yet.
create index message_in_flight on message (source_selector, dest_selector, sent_at) where status < 6;
-- Commits cover ranges of sequence numbers; completeness counts them.
create index message_sequence on message (source_selector, dest_selector, onramp, sequence_number);
-- Committed or blessed, and not yet open to everybody: the few that a passed threshold opens.
create index message_awaiting_execution on message (dest_selector, sent_at)
  where status in (2, 3) and not ready;
-- The same with failed ones: on Solana these open only when the lane's delay has passed.
create index message_awaiting_opening on message (dest_selector, sent_at)
  where status in (2, 3, 6) and not ready;

create table message_token (
  message_id bytea not null,
  token_index smallint not null,
  sent_at timestamptz not null,
  source_selector bigint not null,
  dest_selector bigint not null,
  source_token bytea not null,
  dest_token bytea not null,
  source_pool bytea not null,
  primary key (message_id, token_index)
);
create index message_token_source on message_token (source_token, sent_at desc, message_id desc);
create index message_token_dest on message_token (dest_token, sent_at desc, message_id desc);
create index message_token_pool on message_token (source_pool, sent_at desc, message_id desc);
-- With the lane: a common token is seldom on a rare lane. The token takes the place of a sender in the key.
create index message_token_source_lane on message_token
  (search_key(source_token, null, source_selector, dest_selector), sent_at desc, message_id desc);
create index message_token_dest_lane on message_token
  (search_key(dest_token, null, source_selector, dest_selector), sent_at desc, message_id desc);
create index message_token_pool_lane on message_token
  (search_key(source_pool, null, source_selector, dest_selector), sent_at desc, message_id desc);

-- ---- Facts

-- Observations of single messages. A snapshot beside chain facts is a row here, with an id of zeros.
create table fact (
  message_id bytea not null,
  fact_id bytea not null,
  network bigint,
  block_hash text,
  body text not null,
  -- 'Sent', 'Executed', and so on, as in the body. There is no index on it: the primary key finds the facts of a message,
  -- fact_block those of a block, and either has few.
  kind text not null,
  -- A transaction on the destination beside the receipt, to search by: only failed attempts have it, a success is the receipt.
  transaction bytea,
  primary key (message_id, fact_id)
) with (toast_tuple_target = 8160);
create index fact_block on fact (network, block_hash) where network is not null;
create index fact_transaction on fact (transaction) where transaction is not null;

-- Failed attempts beyond the newest ones of a message. Anybody may attempt to execute a message any number of times: `fact`
-- keeps a bounded number of them, so that whatever reads the facts of a message reads few.
create table earlier_attempt (
  message_id bytea not null,
  fact_id bytea not null,
  kind text not null,
  block_number bigint not null,
  network bigint not null,
  block_hash text not null,
  transaction bytea,
  body text not null,
  primary key (message_id, fact_id)
);
create index earlier_attempt_newest on earlier_attempt (message_id, block_number desc);
create index earlier_attempt_block on earlier_attempt (network, block_hash);
create index earlier_attempt_transaction on earlier_attempt (transaction) where transaction is not null;

-- Executions and their details that were in `fact` until a reorganisation removed their block.
create table removed_attempt (
  message_id bytea not null,
  fact_id bytea not null,
  kind text not null,
  removed_at timestamptz not null,
  body text not null,
  primary key (message_id, fact_id)
);

-- Observations of ranges of sequence numbers: commits and blessings.
create table lane_fact (
  source_selector bigint not null,
  dest_selector bigint not null,
  onramp bytea not null,
  to_sequence numeric(20) not null,
  from_sequence numeric(20) not null,
  fact_id bytea not null,
  network bigint not null,
  block_hash text not null,
  body text not null,
  merkle_root bytea,
  -- A commit has one row for all messages of its root.
  transaction bytea,
  primary key (source_selector, dest_selector, onramp, to_sequence, from_sequence, fact_id)
);
create index lane_fact_block on lane_fact (network, block_hash);
create index lane_fact_root on lane_fact (network, merkle_root);
create index lane_fact_transaction on lane_fact (transaction) where transaction is not null;

-- A blessing names a root only, and its commit may have come before or be yet to come.
create table root_blessing (
  network bigint not null,
  merkle_root bytea not null,
  fact_id bytea not null,
  block_hash text not null,
  body text not null,
  transaction bytea,
  primary key (network, merkle_root, fact_id)
);
create index root_blessing_block on root_blessing (network, block_hash);
create index root_blessing_transaction on root_blessing (transaction) where transaction is not null;

-- Inputs of manual executions as a mirrored server gave them, for messages whose chains are not indexed here.
create table execution_input (
  message_id bytea not null primary key,
  body text not null,
  fetched_at timestamptz not null
);

-- ---- History

-- One row for every change of a message, in the transaction of the change.
create table history (
  position bigint not null,
  message_id bytea not null,
  recorded_at timestamptz not null,
  change text not null check (change in ('created', 'updated', 'removed')),
  status smallint not null,
  previous_status smallint,
  ready boolean not null,
  -- The record as it was, for a message that was removed: it is stored nowhere else.
  removed_record text,
  -- Where and when a chain reported what the status rests on; null where none did.
  occurred_at timestamptz,
  network bigint,
  block_number bigint,
  transaction_hash text,
  -- JSON array of paths: members that a source had left out of the record and that were derived; null for a complete one.
  derived text,
  primary key (message_id, position)
);
create index history_position on history (position);

-- The attempt that a change brought: its row in `fact`, and the row of its details where there is one.
create table history_attempt (
  message_id bytea not null,
  position bigint not null,
  fact_id bytea not null,
  details_id bytea,
  primary key (message_id, position)
);

-- ---- Statistics, updated by every write so that no request has to count. All of them are small.

create table lane_total (
  source_selector bigint not null,
  dest_selector bigint not null,
  status smallint not null,
  ready boolean not null,
  messages bigint not null,
  primary key (source_selector, dest_selector, status, ready)
);

-- By the day (UTC) on which messages were sent.
create table day_total (
  day date not null,
  source_selector bigint not null,
  dest_selector bigint not null,
  status smallint not null,
  messages bigint not null,
  primary key (day, source_selector, dest_selector, status)
);

-- How long successful deliveries took: counts by bucket, the buckets growing by 5 per cent. One row for a lane's day,
-- so that a month of a lane is thirty rows however many messages it had.
create table lane_delivery (
  source_selector bigint not null,
  dest_selector bigint not null,
  day date not null,
  -- [bucket, count, bucket, count, …]: a flat list, which is the quickest to read.
  histogram json not null,
  primary key (source_selector, dest_selector, day)
);

-- The lane as the newest message of each on-ramp describes it.
create table lane_onramp (
  source_selector bigint not null,
  dest_selector bigint not null,
  onramp bytea not null,
  -- The newest message, and when it was sent.
  newest_message bytea not null,
  last_sent_at timestamptz not null,
  -- JSON: onramp, routerAddress, version, sourceNetworkInfo and destNetworkInfo as in the record.
  description text not null,
  -- How many sequence numbers are present, and in how many runs, so that not all of lane_run has to be read.
  present numeric(20) not null default 0,
  runs bigint not null default 0,
  primary key (source_selector, dest_selector, onramp)
);

-- Runs of sequence numbers that are present, both ends included; what lies between two of them is missing.
create table lane_run (
  source_selector bigint not null,
  dest_selector bigint not null,
  onramp bytea not null,
  from_sequence numeric(20) not null,
  to_sequence numeric(20) not null,
  primary key (source_selector, dest_selector, onramp, from_sequence)
);

-- ---- Indexing
--
-- Checkpoint, backlog and failures are separate records: a range that cannot be read stays on the ledger of
-- failures until it can, while the checkpoint and the backlog move on.

-- How far each network is indexed, reported by its indexer; a network without a row comes from imports only.
create table network_progress (
  selector bigint primary key,
  -- The newest block of the network, and its time.
  head_block bigint,
  head_at timestamptz,
  finalized_block bigint,
  -- Everything up to this block is in the store; and its time.
  indexed_block bigint,
  indexed_at timestamptz,
  updated_at timestamptz not null,
  -- Why indexing does not go on, for operators: it may name hosts. Null while it does.
  problem text,
  start_block bigint,
  -- Blocks of the history that are still to be read.
  owed_blocks bigint not null default 0,
  failed_ranges integer not null default 0,
  failed_blocks bigint not null default 0,
  oldest_failure_at timestamptz,
  unreadable_logs bigint not null default 0,
  foreign_logs bigint not null default 0,
  -- The kind of the problem, from a closed list.
  problem_kind text
);

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
  -- Logs of contracts that no router ever registered: seen, not trusted.
  foreign_logs bigint not null default 0,
  -- When the holder of the lease last renewed it: without it, a dead indexer looks like one that has nothing new.
  seen_at timestamptz,
  -- True where executions were indexed without what they returned; the next start of an indexer reads them again.
  lacks_attempts boolean not null default false
);

-- Blocks that may still be orphaned, by height, and the newest final one below them. The highest is the checkpoint:
-- whatever is above it has not been read.
create table index_block (
  network bigint not null,
  number bigint not null,
  hash text not null,
  primary key (network, number)
);

-- Trusted contracts: a router of the configuration, or registered by a trusted contract.
create table index_contract (
  network bigint not null,
  address text not null,
  named_by text,
  -- The block that registered it, where it could still be orphaned.
  block_hash text,
  body text not null,
  primary key (network, address)
);

-- Ramps registered with a router, and the chain at their other end.
create table index_registration (
  network bigint not null,
  contract text not null,
  remote bigint not null,
  role text not null,
  -- The lowest block with an event of the router that registers it; null while only the router's views do.
  block_number bigint,
  primary key (network, contract, remote)
);

-- For chains that list the transactions of an address, newest first, instead of answering for ranges of blocks: a list is
-- continued below a transaction that is known, one for each stretch that was read.
create table index_anchor (
  network bigint not null,
  address text not null,
  block_number bigint not null,
  transaction_hash text not null,
  primary key (network, address, block_number)
);

-- Pending ranges of blocks, both ends included; each is worked from its upper end down.
create table index_backlog (
  network bigint not null,
  id bigint generated always as identity,
  from_block bigint not null,
  to_block bigint not null check (to_block >= from_block),
  -- What it is for: the history of the routers, of all contracts, or of contracts that were registered late.
  purpose text not null check (purpose in ('routers', 'history', 'contracts')),
  -- Only logs of these; null: of all.
  contracts text[],
  primary key (network, id)
);

-- Ranges that could not be read. They are retried for ever, less and less often.
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

-- Logs of trusted contracts that could not be decoded, kept whole for a version that can. The transaction is part of the
-- key because on some chains log indexes start again in each transaction.
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
  primary key (network, block_hash, transaction_hash, log_index)
);

-- Questions to a network about single messages that were sent to it.
create table index_chore (
  message_id bytea not null,
  network bigint not null,
  kind text not null check (kind in ('policy', 'verification')),
  due_at timestamptz not null default now(),
  attempts integer not null default 0,
  primary key (message_id, network, kind)
);
create index index_chore_due on index_chore (network, kind, due_at);

-- Numbers that contracts count themselves, to compare the records with: messages sent, messages committed.
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
  -- What the chain family needs to examine it again.
  body text,
  found_at timestamptz not null default now(),
  -- Endpoints from which the blocks were read since, in vain.
  tried text[] not null default '{}',
  attempts integer not null default 0,
  retry_at timestamptz,
  primary key (network, kind, subject)
);

-- Names and decimals of tokens, read from their contracts by the indexers.
create table token (
  network bigint not null,
  -- Canonical bytes, as in message_token.
  address bytea not null,
  -- The contract's own claims, without control characters; null where it makes none, or was not asked yet.
  symbol text,
  name text,
  decimals smallint,
  -- When the chain answered; null while it has not.
  read_at timestamptz,
  -- Requests without an answer since the latest one.
  attempts integer not null default 0,
  due_at timestamptz not null default now(),
  primary key (network, address)
);
create index token_due on token (network, due_at);
create index token_address on token (address);
create index token_symbol on token (lower(symbol)) where symbol is not null;

-- How far the history has been searched for tokens: at most one row.
create table token_search (
  singleton boolean primary key default true check (singleton),
  position bigint not null default 0
);

-- ---- Mirrors

-- How far each mirrored server has been followed. Advances only behind what has been applied.
create table mirror (
  -- The server's URL without credentials, and the filters that go with it.
  source text primary key,
  -- The newest message fetched: all that is newer has to be asked for. Null where the server showed none yet.
  ground_sent_at timestamptz,
  -- Where the walk into the past goes on: the server's cursor, and the oldest time it has reached.
  backfill_cursor text,
  backfill_oldest timestamptz,
  -- How far back the walk is complete (the year 1970: to the end); null while it is under way.
  complete_since timestamptz,
  updated_at timestamptz not null default now(),
  -- When the process was last alive; null where it is not meant to follow the source (`--once`).
  seen_at timestamptz,
  -- When the source was last read to its newest message.
  current_at timestamptz,
  -- How often that is meant to happen.
  round_seconds double precision
);

-- Messages to fetch again: still in progress, or not available when they were first seen.
create table mirror_owed (
  message_id bytea not null,
  source text not null,
  sent_at timestamptz not null,
  checked_at timestamptz not null,
  due_at timestamptz not null,
  etag text,
  primary key (message_id, source)
);
create index mirror_owed_due on mirror_owed (source, due_at);

-- ---- Webhooks

-- One row a subscription. The lease says which server works on it, by the database's clock, so that servers whose clocks
-- differ agree on it.
create table webhook_subscription (
  name text primary key,
  -- The history has been examined up to here.
  position bigint not null,
  holder uuid,
  leased_until timestamptz,
  delivered bigint not null default 0,
  last_delivered_at timestamptz,
  last_error text,
  last_failed_at timestamptz
);

-- One row for every pending delivery of a change; a delivered one has no row any more. The body is made from the history
-- when it is sent.
create table webhook_delivery (
  message_id bytea not null,
  subscription text not null,
  position bigint not null,
  state text not null default 'pending' check (state in ('pending', 'parked')),
  attempts integer not null default 0,
  first_attempt_at timestamptz,
  -- During an attempt: when it counts as lost. Of a parked one: since when it is parked.
  next_attempt_at timestamptz not null,
  last_error text,
  -- Null where the latest attempt had no HTTP answer.
  last_status smallint,
  primary key (message_id, subscription, position)
);
create index webhook_delivery_due on webhook_delivery (subscription, state, next_attempt_at, position);

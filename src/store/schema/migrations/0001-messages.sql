-- Messages, the facts they are folded from, and the history of every change.
--
-- The message id is the distribution key of every table that grows: each of their unique constraints
-- contains it, so that the schema can be sharded by it without a change.
--
-- Addresses, hashes and ids are canonical bytes. Chain selectors are unsigned 64-bit integers kept in a
-- bigint, two's complement; uint64() shows them as people know them.

create function uint64(stored bigint) returns numeric
  language sql immutable parallel safe
  return case when stored < 0 then stored::numeric + 18446744073709551616 else stored::numeric end;

-- One row: what this store is, and the position of its latest change. Whoever writes locks it, so that
-- positions are given out without a gap and become visible in their order.
create table store (
  singleton boolean primary key default true check (singleton),
  position bigint not null default 0,
  simulated boolean not null,
  created_at timestamptz not null default now()
);

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
  -- True where nothing but snapshots is known: the record itself is then their join, and `fact` has no row.
  is_snapshot boolean not null,
  sender bytea not null,
  receiver bytea not null,
  origin bytea not null,
  onramp bytea not null,
  send_transaction bytea not null,
  receipt_transaction bytea,
  -- SHA-256 of the record, first 16 bytes: tells a change without reading the record.
  digest bytea not null,
  -- The wire JSON, ready-made. Its first summary_length characters, closed with }, are the summary view.
  record text not null
)
-- Records of usual size stay in the row as they are: reading them costs neither a second look-up nor unpacking.
with (toast_tuple_target = 8160);

-- Each filter together with the order of the result: a page is read from one index, without a sort.
create index message_newest on message (sent_at desc, message_id desc);
create index message_sender on message (sender, sent_at desc, message_id desc);
create index message_receiver on message (receiver, sent_at desc, message_id desc);
create index message_origin on message (origin, sent_at desc, message_id desc);
create index message_source on message (source_selector, sent_at desc, message_id desc);
create index message_dest on message (dest_selector, sent_at desc, message_id desc);
create index message_lane on message (source_selector, dest_selector, sent_at desc, message_id desc);
create index message_status on message (status, sent_at desc, message_id desc);
create index message_ready on message (sent_at desc, message_id desc) where ready;
-- Status 0 to 5: sent, and neither failed nor succeeded yet.
create index message_in_flight on message (source_selector, dest_selector, sent_at) where status < 6;
create index message_send_transaction on message (send_transaction, sent_at desc, message_id desc);
create index message_receipt_transaction on message (receipt_transaction, sent_at desc, message_id desc)
  where receipt_transaction is not null;
-- Commits name runs of sequence numbers; completeness counts them.
create index message_sequence on message (source_selector, dest_selector, onramp, sequence_number);

create table message_token (
  message_id bytea not null,
  token_index smallint not null,
  sent_at timestamptz not null,
  source_token bytea not null,
  dest_token bytea not null,
  source_pool bytea not null,
  primary key (message_id, token_index)
);
create index message_token_source on message_token (source_token, sent_at desc, message_id desc);
create index message_token_dest on message_token (dest_token, sent_at desc, message_id desc);
create index message_token_pool on message_token (source_pool, sent_at desc, message_id desc);

-- What was observed of single messages. A snapshot beside chain facts is a row here, with an id of zeros.
create table fact (
  message_id bytea not null,
  fact_id bytea not null,
  network bigint,
  block_hash text,
  body text not null,
  primary key (message_id, fact_id)
) with (toast_tuple_target = 8160);
create index fact_block on fact (network, block_hash) where network is not null;

-- What was observed of runs of sequence numbers: commits and blessings.
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
  primary key (source_selector, dest_selector, onramp, to_sequence, from_sequence, fact_id)
);
create index lane_fact_block on lane_fact (network, block_hash);

-- One row for every change of a message, in the transaction of the change.
create table history (
  position bigint not null,
  message_id bytea not null,
  recorded_at timestamptz not null,
  change text not null check (change in ('created', 'updated', 'removed')),
  status smallint not null,
  previous_status smallint,
  ready boolean not null,
  -- The record as it was, for a message that was removed: nothing else remembers it.
  removed_record text,
  -- Where and when a chain said what the status rests on; null where nobody told.
  occurred_at timestamptz,
  network bigint,
  block_number bigint,
  transaction_hash text,
  primary key (message_id, position)
);
create index history_position on history (position);

-- Statistics, kept by every write so that nobody has to count at request time. All of them are small.

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

-- What the newest message of each on-ramp says about its lane.
create table lane_onramp (
  source_selector bigint not null,
  dest_selector bigint not null,
  onramp bytea not null,
  -- The newest message, and when it was sent.
  newest_message bytea not null,
  last_sent_at timestamptz not null,
  -- JSON: onramp, routerAddress, version, sourceNetworkInfo and destNetworkInfo as in the record.
  description text not null,
  -- How many sequence numbers are present, and in how many runs: nobody has to read all of lane_run.
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

-- How far each network is indexed, told by whoever indexes it; a network without a row comes from imports only.
create table network_progress (
  selector bigint primary key,
  -- The newest block that the network has told of, and its time.
  head_block bigint,
  head_at timestamptz,
  finalized_block bigint,
  -- Everything up to this block is in the store; and its time.
  indexed_block bigint,
  indexed_at timestamptz,
  updated_at timestamptz not null,
  -- Why it does not go on, for people; null while it does.
  problem text
);

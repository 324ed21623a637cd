-- New tables for messages, facts and history, which take half the space of those before. Until `0023` they stand beside the
-- old ones: the rows are converted in batches in between (`conversion.ts`), while readers go on with the old tables.
--
-- Columns of fixed length come first, so that no row has padding between them.

-- How far the rows of each old table are converted.
create table conversion (
  old_table text primary key,
  -- The files of the old table. A table in other files is converted anew.
  files text not null,
  -- The page with which the next batch begins; on a cluster the last message id.
  next text not null
);

create table new_message (
  -- The order of every search in eight bytes: milliseconds of the send time, then the first 15 bits of the message id. Time
  -- and id would take 41 bytes in each index. The message id itself decides between the few equal keys.
  sort_key bigint not null,
  sent_at timestamptz not null,
  -- Position in the history of the latest change of this message; also its version.
  position bigint not null,
  source_selector bigint not null,
  dest_selector bigint not null,
  finality bigint not null,
  -- Milliseconds from send to execution; null until executed.
  delivery_ms bigint,
  summary_length integer not null,
  status smallint not null,
  ready boolean not null,
  -- True where only snapshots are known: the record itself is then their join, and `fact` has no row.
  is_snapshot boolean not null,
  sequence_number numeric(20) not null,
  message_id bytea not null,
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
-- Records of usual size stay in the row as they are: reading them costs neither a second look-up nor unpacking. A row is
-- written four to five times in the first hour of its message: without a vacuum at each 2 per cent of the table, a fifth of
-- it would be dead rows.
with (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.02);

create table new_message_token (
  sort_key bigint not null,
  source_selector bigint not null,
  dest_selector bigint not null,
  token_index smallint not null,
  message_id bytea not null,
  source_token bytea not null,
  dest_token bytea not null,
  source_pool bytea not null,
  -- The first seven bytes of the sender and the receiver of the message: for searches by a token and one of them.
  sender_beginning bytea not null,
  receiver_beginning bytea not null
);

-- Observations of single messages. A snapshot beside chain facts is a row here, with an id of zeros.
--
-- Columns hold what every fact has, as bytes; the body holds the rest of it, packed (`src/store/facts/`). A fact is read back
-- exactly as it was.
create table new_fact (
  -- Where it was seen; null in a snapshot.
  network bigint,
  block_number bigint,
  seen_at timestamptz,
  log_index integer,
  -- A number of `src/store/facts/kinds.ts`; failed executions have one of their own.
  kind smallint not null,
  message_id bytea not null,
  -- Hash of the fact as JSON: 16 bytes.
  fact_id bytea not null,
  block_hash bytea,
  transaction bytea,
  body bytea not null
) with (toast_tuple_target = 8160);

-- Failed attempts beyond the newest ones of a message. Anybody may attempt to execute a message any number of times: `fact`
-- keeps a bounded number of them, so that whatever reads the facts of a message reads few.
create table new_earlier_attempt (
  network bigint not null,
  block_number bigint not null,
  seen_at timestamptz not null,
  log_index integer,
  kind smallint not null,
  message_id bytea not null,
  fact_id bytea not null,
  block_hash bytea not null,
  transaction bytea,
  body bytea not null
);

-- Executions and their details that were in `fact` until a reorganisation removed their block.
create table new_removed_attempt (
  network bigint not null,
  block_number bigint not null,
  seen_at timestamptz not null,
  removed_at timestamptz not null,
  log_index integer,
  kind smallint not null,
  message_id bytea not null,
  fact_id bytea not null,
  block_hash bytea not null,
  transaction bytea,
  body bytea not null
);

-- Observations of ranges of sequence numbers: commits and blessings.
create table new_lane_fact (
  source_selector bigint not null,
  dest_selector bigint not null,
  network bigint not null,
  block_number bigint not null,
  seen_at timestamptz not null,
  log_index integer,
  kind smallint not null,
  to_sequence numeric(20) not null,
  from_sequence numeric(20) not null,
  onramp bytea not null,
  fact_id bytea not null,
  block_hash bytea not null,
  merkle_root bytea not null,
  -- A commit has one row for all messages of its root.
  transaction bytea,
  body bytea not null
);

-- A blessing names a root only, and its commit may have come before or be yet to come.
create table new_root_blessing (
  network bigint not null,
  block_number bigint not null,
  seen_at timestamptz not null,
  log_index integer,
  kind smallint not null,
  fact_id bytea not null,
  block_hash bytea not null,
  merkle_root bytea not null,
  transaction bytea,
  body bytea not null
);

-- One row for every change of a message, in the transaction of the change.
create table new_history (
  position bigint not null,
  recorded_at timestamptz not null,
  -- Where and when a chain reported what the status rests on; null where none did.
  occurred_at timestamptz,
  network bigint,
  block_number bigint,
  status smallint not null,
  previous_status smallint,
  -- 1 created, 2 updated, 3 removed.
  change smallint not null check (change between 1 and 3),
  ready boolean not null,
  message_id bytea not null,
  transaction bytea,
  -- The attempt that the change brought: its row in `fact`, and the row of its details where there is one.
  attempt_fact bytea,
  attempt_details bytea,
  -- The record as it was, for a message that was removed: it is stored nowhere else.
  removed_record text,
  -- JSON array of paths: members that a source had left out of the record and that were derived; null for a complete one.
  derived text
);

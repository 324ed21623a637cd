-- Attempts to execute messages: which change brought one, and those that a reorganisation took back. Both tables begin
-- empty; earlier changes and earlier reorganisations have no row.

-- The attempt that a change brought: its row in `fact`, and the row of its details where there is one.
create table history_attempt (
  message_id bytea not null,
  position bigint not null,
  fact_id bytea not null,
  details_id bytea,
  primary key (message_id, position)
);

-- Executions and their details that were in `fact` until a reorganisation removed their block.
create table removed_attempt (
  message_id bytea not null,
  fact_id bytea not null,
  kind text not null,
  removed_at timestamptz not null,
  body text not null,
  primary key (message_id, fact_id)
);

-- Heartbeats by the database's clock: without them, a dead indexer or mirror looks like one that has nothing new.

-- When the holder of the lease last renewed it.
alter table index_network add column seen_at timestamptz;

-- The kind of the problem, from a closed list; `problem` itself may name hosts and is for operators only.
alter table network_progress add column problem_kind text;

alter table mirror
  -- When the process was last alive; null where it is not meant to follow the source (`--once`).
  add column seen_at timestamptz,
  -- When the source was last read to its newest message.
  add column current_at timestamptz,
  -- How often that is meant to happen.
  add column round_seconds double precision;

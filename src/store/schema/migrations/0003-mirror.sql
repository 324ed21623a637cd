-- How far each mirrored server has been followed. Advances only behind what has been applied.
create table mirror (
  -- The server's URL without credentials, and the filters that go with it.
  source text primary key,
  -- The newest message brought: all that is newer has to be asked for. Null where the server showed none yet.
  ground_sent_at timestamptz,
  -- Where the walk into the past goes on: the server's cursor, and the oldest time it has reached.
  backfill_cursor text,
  backfill_oldest timestamptz,
  -- How far back the walk is complete (the year 1970: to the end); null while it is under way.
  complete_since timestamptz,
  updated_at timestamptz not null default now()
);

-- Messages that are to be asked for again: still moving, or not to be had when they were first seen.
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

-- What tokens say of themselves, asked of their chains by the indexers. New tables only: readers and writers go on.
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

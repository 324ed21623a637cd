-- Webhooks: how far each subscription has followed the history, and what is still to be delivered.

-- One row a subscription. The lease says which server does its work; it is judged by the database's clock, so that
-- servers whose clocks differ agree on it.
create table webhook_subscription (
  name text primary key,
  -- Everything in the history up to here has been looked at.
  position bigint not null,
  holder uuid,
  leased_until timestamptz,
  delivered bigint not null default 0,
  last_delivered_at timestamptz,
  last_error text,
  last_failed_at timestamptz
);

-- One row for every change that a subscription is owed. What is delivered has no row any more. The body is made from
-- the history when it is sent.
create table webhook_delivery (
  message_id bytea not null,
  subscription text not null,
  position bigint not null,
  state text not null default 'pending' check (state in ('pending', 'parked')),
  attempts integer not null default 0,
  first_attempt_at timestamptz,
  -- While an attempt is under way: when it counts as lost. For a parked one: since when it is.
  next_attempt_at timestamptz not null,
  last_error text,
  -- Null where the latest attempt had no HTTP answer.
  last_status smallint,
  primary key (message_id, subscription, position)
);
create index webhook_delivery_due on webhook_delivery (subscription, state, next_attempt_at, position);

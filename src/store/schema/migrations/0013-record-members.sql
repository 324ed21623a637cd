-- Records that grow, and every transaction of a message.

-- JSON array of paths: members that a source had left out of the record and that were derived; null for a complete one.
alter table history add column derived text;

-- Transactions on the destination beside the receipt, to search by. Of executions only failed attempts have it: a
-- success is the receipt itself. A commit has one row for all messages of its root.
alter table fact add column transaction bytea;
update fact set transaction = decode(substr(body::json -> 'seen' ->> 'transactionHash', 3), 'hex')
  where kind = 'Executed' and (body::json ->> 'success') = 'false'
    and (body::json -> 'seen' ->> 'transactionHash') ~ '^0x[0-9a-f]{64}$';
create index fact_transaction on fact (transaction) where transaction is not null;

alter table lane_fact add column transaction bytea;
update lane_fact set transaction = decode(substr(body::json -> 'seen' ->> 'transactionHash', 3), 'hex')
  where (body::json -> 'seen' ->> 'transactionHash') ~ '^0x[0-9a-f]{64}$';
create index lane_fact_transaction on lane_fact (transaction) where transaction is not null;

alter table root_blessing add column transaction bytea;
update root_blessing set transaction = decode(substr(body::json -> 'seen' ->> 'transactionHash', 3), 'hex')
  where (body::json -> 'seen' ->> 'transactionHash') ~ '^0x[0-9a-f]{64}$';
create index root_blessing_transaction on root_blessing (transaction) where transaction is not null;

-- Inputs of manual executions as a mirrored server gave them, for messages whose chains are not indexed here.
create table execution_input (
  message_id bytea not null primary key,
  body text not null,
  fetched_at timestamptz not null
);

-- Failed attempts beyond the newest ones of a message. Anybody may attempt to execute a message any number of times: `fact`
-- keeps a bounded number of them, so that whatever reads the facts of a message reads few. A message that has more in `fact`
-- already is tidied when its next fact arrives.
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

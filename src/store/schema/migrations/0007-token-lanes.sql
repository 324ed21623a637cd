-- Tokens by lane: a common token is seldom on a rare lane, and never on one of another chain.
--
-- The table is made anew rather than updated: every row changes, and half of it would be left behind as waste.
create table token_with_lane as
  select t.message_id, t.token_index, t.sent_at, m.source_selector, m.dest_selector,
         t.source_token, t.dest_token, t.source_pool
  from message_token t join message m on m.message_id = t.message_id;
drop table message_token;
alter table token_with_lane rename to message_token;
alter table message_token
  alter message_id set not null,
  alter token_index set not null,
  alter sent_at set not null,
  alter source_selector set not null,
  alter dest_selector set not null,
  alter source_token set not null,
  alter dest_token set not null,
  alter source_pool set not null,
  add primary key (message_id, token_index);
create index message_token_source on message_token (source_token, sent_at desc, message_id desc);
create index message_token_dest on message_token (dest_token, sent_at desc, message_id desc);
create index message_token_pool on message_token (source_pool, sent_at desc, message_id desc);

-- The token stands where a sender would: the keys of this table are its own.
create index message_token_source_lane on message_token
  (search_key(source_token, null, source_selector, dest_selector), sent_at desc, message_id desc);
create index message_token_dest_lane on message_token
  (search_key(dest_token, null, source_selector, dest_selector), sent_at desc, message_id desc);
create index message_token_pool_lane on message_token
  (search_key(source_pool, null, source_selector, dest_selector), sent_at desc, message_id desc);
analyze message_token;

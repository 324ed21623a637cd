-- The indexes of the new tables. Applied when all rows are converted; 0024 puts the new tables in the place of the old ones.
--
-- An index has the sort key instead of send time and message id, and the first seven bytes of an address or a hash instead
-- of all of them (with the length, eight bytes): the rest is checked on the row. Nobody can find an address that has seven
-- bytes in common with another one, and if somebody could, a page would take longer.

set local maintenance_work_mem = '256MB';

alter table new_message add constraint message_key primary key (message_id);
-- Each filter together with the order of the result: a page is read from one index. `sequence_number >= 0` is always true: only
-- searches that are meant to walk all messages in order state it, so that the planner does so for no other.
create index message_by_time on new_message (sort_key) where sequence_number >= 0;
create index message_by_sender on new_message (substr(sender, 1, 7), sort_key);
create index message_by_receiver on new_message (substr(receiver, 1, 7), sort_key);
-- Where the origin is the sender itself, the sender finds it.
create index message_by_origin on new_message (substr(origin, 1, 7), sort_key) where origin <> sender;
create index message_by_source on new_message (source_selector, sort_key);
create index message_by_dest on new_message (dest_selector, sort_key);
create index message_by_lane on new_message (source_selector, dest_selector, sort_key);
create index message_by_status on new_message (status, sort_key) where sequence_number >= 0;
create index message_by_send_transaction on new_message (substr(send_transaction, 1, 7), sort_key);
create index message_by_receipt_transaction on new_message (substr(receipt_transaction, 1, 7), sort_key)
  where receipt_transaction is not null;
create index message_by_actors on new_message (search_key(sender, receiver, null, null), sort_key);
create index message_by_sender_lane on new_message
  (search_key(sender, null, source_selector, dest_selector), sort_key);
create index message_by_receiver_lane on new_message
  (search_key(null, receiver, source_selector, dest_selector), sort_key);
create index message_by_actors_lane on new_message
  (search_key(sender, receiver, source_selector, dest_selector), sort_key);

-- The same for messages that are ready for manual execution, and for those that failed (status 6): few, and often
-- searched for.
create index message_ready_by_time on new_message (sort_key) where ready and sequence_number >= 0;
create index message_ready_by_sender on new_message (substr(sender, 1, 7), sort_key) where ready;
create index message_ready_by_receiver on new_message (substr(receiver, 1, 7), sort_key) where ready;
create index message_ready_by_source on new_message (source_selector, sort_key) where ready;
create index message_ready_by_dest on new_message (dest_selector, sort_key) where ready;
create index message_ready_by_lane on new_message (source_selector, dest_selector, sort_key) where ready;
create index message_ready_by_actors on new_message
  (search_key(sender, receiver, null, null), sort_key) where ready;
create index message_ready_by_sender_lane on new_message
  (search_key(sender, null, source_selector, dest_selector), sort_key) where ready;
create index message_ready_by_receiver_lane on new_message
  (search_key(null, receiver, source_selector, dest_selector), sort_key) where ready;
create index message_ready_by_actors_lane on new_message
  (search_key(sender, receiver, source_selector, dest_selector), sort_key) where ready;
-- No message should be both ready and successful, but a record that says so must be found.
create index message_ready_succeeded on new_message (sort_key) where ready and status = 7 and sequence_number >= 0;

create index message_failed_by_sender on new_message (substr(sender, 1, 7), sort_key) where status = 6;
create index message_failed_by_receiver on new_message (substr(receiver, 1, 7), sort_key) where status = 6;
create index message_failed_by_source on new_message (source_selector, sort_key) where status = 6;
create index message_failed_by_dest on new_message (dest_selector, sort_key) where status = 6;
create index message_failed_by_lane on new_message (source_selector, dest_selector, sort_key) where status = 6;
create index message_failed_by_actors on new_message
  (search_key(sender, receiver, null, null), sort_key) where status = 6;
create index message_failed_by_sender_lane on new_message
  (search_key(sender, null, source_selector, dest_selector), sort_key) where status = 6;
create index message_failed_by_receiver_lane on new_message
  (search_key(null, receiver, source_selector, dest_selector), sort_key) where status = 6;
create index message_failed_by_actors_lane on new_message
  (search_key(sender, receiver, source_selector, dest_selector), sort_key) where status = 6;

-- Status 0 to 5: sent, and neither failed nor succeeded yet.
create index message_in_flight_by_lane on new_message (source_selector, dest_selector, sent_at) where status < 6;
-- Commits cover ranges of sequence numbers; completeness counts them. The few on-ramps that a lane has had are told apart by
-- the row.
create index message_by_sequence on new_message (source_selector, dest_selector, sequence_number);
-- Committed or blessed, and not yet open to everybody: the few that a passed threshold opens.
create index message_to_execute on new_message (dest_selector, sent_at) where status in (2, 3) and not ready;
-- The same with failed ones: on Solana these open only when the lane's delay has passed.
create index message_to_open on new_message (dest_selector, sent_at) where status in (2, 3, 6) and not ready;

alter table new_message_token add constraint message_token_key primary key (message_id, token_index);
create index message_token_by_source on new_message_token (substr(source_token, 1, 7), sort_key);
create index message_token_by_dest on new_message_token (substr(dest_token, 1, 7), sort_key);
create index message_token_by_pool on new_message_token (substr(source_pool, 1, 7), sort_key);
-- With the lane: a common token is seldom on a rare lane. The token takes the place of a sender in the key.
create index message_token_by_source_lane on new_message_token
  (search_key(source_token, null, source_selector, dest_selector), sort_key);
create index message_token_by_dest_lane on new_message_token
  (search_key(dest_token, null, source_selector, dest_selector), sort_key);
create index message_token_by_pool_lane on new_message_token
  (search_key(source_pool, null, source_selector, dest_selector), sort_key);
-- With an actor: a common token is seldom one that a certain sender sends.
create index message_token_by_source_sender on new_message_token
  (search_key(source_token, sender_beginning, null, null), sort_key);
create index message_token_by_source_receiver on new_message_token
  (search_key(receiver_beginning, source_token, null, null), sort_key);

-- Equal keys share an entry, so that an index of the message id alone takes a third of one of message id and fact id. That
-- no fact is stored twice is the writer's work: it reads the facts of a message before it adds to them.
create index fact_by_message on new_fact (message_id);
create index fact_by_block on new_fact (substr(block_hash, 1, 7)) where block_hash is not null;
-- Failed executions: transactions on the destination beside the receipt.
create index fact_by_transaction on new_fact (substr(transaction, 1, 7)) where kind = 7;

alter table new_earlier_attempt add constraint earlier_attempt_key primary key (message_id, fact_id);
create index earlier_attempt_by_number on new_earlier_attempt (message_id, block_number desc);
create index earlier_attempt_by_block on new_earlier_attempt (substr(block_hash, 1, 7));
create index earlier_attempt_by_transaction on new_earlier_attempt (substr(transaction, 1, 7)) where kind = 7;

alter table new_removed_attempt add constraint removed_attempt_key primary key (message_id, fact_id);

alter table new_lane_fact add constraint lane_fact_key
  primary key (source_selector, dest_selector, onramp, to_sequence, from_sequence, fact_id);
create index lane_fact_by_block on new_lane_fact (substr(block_hash, 1, 7));
create index lane_fact_by_root on new_lane_fact (substr(merkle_root, 1, 7));
create index lane_fact_by_transaction on new_lane_fact (substr(transaction, 1, 7)) where transaction is not null;

alter table new_root_blessing add constraint root_blessing_key primary key (merkle_root, network, fact_id);
create index root_blessing_by_block on new_root_blessing (substr(block_hash, 1, 7));
create index root_blessing_by_transaction on new_root_blessing (substr(transaction, 1, 7))
  where transaction is not null;

-- Reads the newest changes of one message, which may have any number of them.
create index history_by_message on new_history (substr(message_id, 1, 7), position);
create index history_by_position on new_history (position);

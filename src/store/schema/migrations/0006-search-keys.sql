-- Indexes for filters that are asked for together.
--
-- Two filters that are each common but seldom hold together are the hard case: read through the index of one of them, a
-- page looks at row after row that the other rejects. So the rows of every such pair stand side by side in an index of
-- their own. A hash of what is asked for takes a third of the room of the addresses themselves, and leaves the planner
-- no other index to mistake for this one.

-- Null stands for what is not part of a key.
create function search_key(sender bytea, receiver bytea, source bigint, dest bigint) returns bigint
  language sql immutable parallel safe
  return hash_record_extended(row(sender, receiver, source, dest), 0);

create index message_actors on message
  (search_key(sender, receiver, null, null), sent_at desc, message_id desc);
create index message_sender_lane on message
  (search_key(sender, null, source_selector, dest_selector), sent_at desc, message_id desc);
create index message_receiver_lane on message
  (search_key(null, receiver, source_selector, dest_selector), sent_at desc, message_id desc);
create index message_actors_lane on message
  (search_key(sender, receiver, source_selector, dest_selector), sent_at desc, message_id desc);

-- The same for messages that are ready for manual execution, and for those that failed (status 6): few, and often
-- looked for.
create index message_ready_sender on message (sender, sent_at desc, message_id desc) where ready;
create index message_ready_receiver on message (receiver, sent_at desc, message_id desc) where ready;
create index message_ready_source on message (source_selector, sent_at desc, message_id desc) where ready;
create index message_ready_dest on message (dest_selector, sent_at desc, message_id desc) where ready;
create index message_ready_lane on message
  (source_selector, dest_selector, sent_at desc, message_id desc) where ready;
create index message_ready_actors on message
  (search_key(sender, receiver, null, null), sent_at desc, message_id desc) where ready;
create index message_ready_sender_lane on message
  (search_key(sender, null, source_selector, dest_selector), sent_at desc, message_id desc) where ready;
create index message_ready_receiver_lane on message
  (search_key(null, receiver, source_selector, dest_selector), sent_at desc, message_id desc) where ready;
create index message_ready_actors_lane on message
  (search_key(sender, receiver, source_selector, dest_selector), sent_at desc, message_id desc) where ready;

create index message_failed_sender on message (sender, sent_at desc, message_id desc) where status = 6;
create index message_failed_receiver on message (receiver, sent_at desc, message_id desc) where status = 6;
create index message_failed_source on message (source_selector, sent_at desc, message_id desc) where status = 6;
create index message_failed_dest on message (dest_selector, sent_at desc, message_id desc) where status = 6;
create index message_failed_lane on message
  (source_selector, dest_selector, sent_at desc, message_id desc) where status = 6;
create index message_failed_actors on message
  (search_key(sender, receiver, null, null), sent_at desc, message_id desc) where status = 6;
create index message_failed_sender_lane on message
  (search_key(sender, null, source_selector, dest_selector), sent_at desc, message_id desc) where status = 6;
create index message_failed_receiver_lane on message
  (search_key(null, receiver, source_selector, dest_selector), sent_at desc, message_id desc) where status = 6;
create index message_failed_actors_lane on message
  (search_key(sender, receiver, source_selector, dest_selector), sent_at desc, message_id desc) where status = 6;

-- Nobody should be both ready and successful, but a record that says so must be found.
create index message_ready_success on message (sent_at desc, message_id desc) where ready and status = 7;

-- Where the origin is the sender itself, the sender finds it.
drop index message_origin;
create index message_origin on message (origin, sent_at desc, message_id desc) where origin <> sender;

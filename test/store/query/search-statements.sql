-- The SQL of the search as it is sent. Written by explain.test.ts; update with `npx vitest run test/store/query/explain.test.ts -u`.

-- The newest messages.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where true
      order by m.sent_at desc, m.message_id desc limit 1001) page limit $1;

-- The newest messages, summary view, behind a cursor.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select m.sent_at, m.message_id, m.digest, left(m.record, m.summary_length) || '}' as body from message m
      where (m.sent_at, m.message_id) < ($1::timestamptz, $2::bytea)
      order by m.sent_at desc, m.message_id desc limit 1001) page limit $3;

-- By sender.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.sender = $1::bytea
      order by m.sent_at desc, m.message_id desc limit 1001) page limit $2;

-- By receiver on SVM.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.receiver = $1::bytea
      order by m.sent_at desc, m.message_id desc limit 1001) page limit $2;

-- A lane.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.source_selector = $1::bigint and m.dest_selector = $2::bigint
      order by m.sent_at desc, m.message_id desc limit 1001) page limit $3;

-- Ready for manual execution.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.ready
      order by m.sent_at desc, m.message_id desc limit 1001) page limit $1;

-- By source transaction.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.send_transaction = $1::bytea
      order by m.sent_at desc, m.message_id desc limit 1001) page limit $2;

-- By one status.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.status = 6
      order by m.sent_at desc, m.message_id desc limit 1001) page limit $1;

-- By several statuses, behind a cursor.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select distinct on (sent_at, message_id) sent_at, message_id, digest, body
    from ((select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.status = 2 and (m.sent_at, m.message_id) < ($1::timestamptz, $2::bytea)
      order by m.sent_at desc, m.message_id desc limit 1001) union all (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.status = 3 and (m.sent_at, m.message_id) < ($3::timestamptz, $4::bytea)
      order by m.sent_at desc, m.message_id desc limit 1001)) scans
    order by sent_at desc, message_id desc limit 1001) page limit $5;

-- Sent in a period.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.sent_at >= $1::timestamptz and m.sent_at < $2::timestamptz
      order by m.sent_at desc, m.message_id desc limit 1001) page limit $3;

-- By address: sender, receiver or origin.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select distinct on (sent_at, message_id) sent_at, message_id, digest, body
    from ((select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.sender = $1::bytea
      order by m.sent_at desc, m.message_id desc limit 1001) union all (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.receiver = $2::bytea
      order by m.sent_at desc, m.message_id desc limit 1001) union all (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where (m.origin = $3::bytea and m.origin <> m.sender)
      order by m.sent_at desc, m.message_id desc limit 1001)) scans
    order by sent_at desc, message_id desc limit 1001) page limit $4;

-- By source token.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where t.source_token = $1::bytea
      order by t.sent_at desc, t.message_id desc limit 1001) page limit $2;

-- By source token, to a network.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select of_lane.* from (select distinct source_selector, dest_selector from lane_total where dest_selector = $1::bigint) l cross join lateral (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where search_key(t.source_token, null, t.source_selector, t.dest_selector) = search_key($2::bytea, null, l.source_selector, l.dest_selector) and coalesce(t.source_token = $3::bytea, false) and coalesce(m.dest_selector = $4::bigint, false)
      order by t.sent_at desc, t.message_id desc limit $5) of_lane
      order by of_lane.sent_at desc, of_lane.message_id desc limit 1001) page limit $6;

-- By destination transaction.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select distinct on (sent_at, message_id) sent_at, message_id, digest, body
    from ((select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.receipt_transaction = $1::bytea
      order by m.sent_at desc, m.message_id desc limit 1001) union all (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.message_id = any(array(select f.message_id from fact f where f.transaction = $2::bytea
    union all select e.message_id from earlier_attempt e where e.transaction = $3::bytea
    union all select c.message_id from lane_fact r cross join lateral (
      select message_id from message
      where source_selector = r.source_selector and dest_selector = r.dest_selector and onramp = r.onramp
        and sequence_number between r.from_sequence and r.to_sequence
      order by source_selector, dest_selector, onramp, sequence_number limit 512) c where r.transaction = $4::bytea
    union all select c.message_id from root_blessing b cross join lateral (
        select * from lane_fact where network = b.network and merkle_root = b.merkle_root limit 64) r
      cross join lateral (
      select message_id from message
      where source_selector = r.source_selector and dest_selector = r.dest_selector and onramp = r.onramp
        and sequence_number between r.from_sequence and r.to_sequence
      order by source_selector, dest_selector, onramp, sequence_number limit 512) c where b.transaction = $5::bytea))
      order by m.sent_at desc, m.message_id desc limit 1001)) scans
    order by sent_at desc, message_id desc limit 1001) page limit $6;

-- By message ids.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.message_id = any($1::bytea[])
      order by m.sent_at desc, m.message_id desc limit 1001) page limit $2;

-- By an address as a search term.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select distinct on (sent_at, message_id) sent_at, message_id, digest, body
    from ((select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.sender = $1::bytea
      order by m.sent_at desc, m.message_id desc limit 1001) union all (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.receiver = $2::bytea
      order by m.sent_at desc, m.message_id desc limit 1001) union all (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where t.source_token = $3::bytea
      order by t.sent_at desc, t.message_id desc limit 1001) union all (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where t.dest_token = $4::bytea
      order by t.sent_at desc, t.message_id desc limit 1001) union all (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where t.source_pool = $5::bytea
      order by t.sent_at desc, t.message_id desc limit 1001)) scans
    order by sent_at desc, message_id desc limit 1001) page limit $6;

-- By a hash or id as a search term.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select distinct on (sent_at, message_id) sent_at, message_id, digest, body
    from ((select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.sender = $1::bytea
      order by m.sent_at desc, m.message_id desc limit 1001) union all (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.receiver = $2::bytea
      order by m.sent_at desc, m.message_id desc limit 1001) union all (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where t.source_token = $3::bytea
      order by t.sent_at desc, t.message_id desc limit 1001) union all (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where t.dest_token = $4::bytea
      order by t.sent_at desc, t.message_id desc limit 1001) union all (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where t.source_pool = $5::bytea
      order by t.sent_at desc, t.message_id desc limit 1001) union all (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.send_transaction = $6::bytea
      order by m.sent_at desc, m.message_id desc limit 1001) union all (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.receipt_transaction = $7::bytea
      order by m.sent_at desc, m.message_id desc limit 1001) union all (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.message_id = any(array(select f.message_id from fact f where f.transaction = $8::bytea
    union all select e.message_id from earlier_attempt e where e.transaction = $9::bytea
    union all select c.message_id from lane_fact r cross join lateral (
      select message_id from message
      where source_selector = r.source_selector and dest_selector = r.dest_selector and onramp = r.onramp
        and sequence_number between r.from_sequence and r.to_sequence
      order by source_selector, dest_selector, onramp, sequence_number limit 512) c where r.transaction = $10::bytea
    union all select c.message_id from root_blessing b cross join lateral (
        select * from lane_fact where network = b.network and merkle_root = b.merkle_root limit 64) r
      cross join lateral (
      select message_id from message
      where source_selector = r.source_selector and dest_selector = r.dest_selector and onramp = r.onramp
        and sequence_number between r.from_sequence and r.to_sequence
      order by source_selector, dest_selector, onramp, sequence_number limit 512) c where b.transaction = $11::bytea))
      order by m.sent_at desc, m.message_id desc limit 1001) union all (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.message_id = any($12::bytea[])
      order by m.sent_at desc, m.message_id desc limit 1001)) scans
    order by sent_at desc, message_id desc limit 1001) page limit $13;

-- By two addresses as search terms.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select distinct on (sent_at, message_id) sent_at, message_id, digest, body
    from ((select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.sender = $1::bytea and coalesce(((m.sender = $2::bytea) or (m.receiver = $3::bytea) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_token = $4::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.dest_token = $5::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_pool = $6::bytea))), false)
      order by m.sent_at desc, m.message_id desc limit 1001) union all (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where m.receiver = $7::bytea and coalesce(((m.sender = $8::bytea) or (m.receiver = $9::bytea) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_token = $10::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.dest_token = $11::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_pool = $12::bytea))), false)
      order by m.sent_at desc, m.message_id desc limit 1001) union all (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where t.source_token = $13::bytea and coalesce(((m.sender = $14::bytea) or (m.receiver = $15::bytea) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_token = $16::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.dest_token = $17::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_pool = $18::bytea))), false)
      order by t.sent_at desc, t.message_id desc limit 1001) union all (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where t.dest_token = $19::bytea and coalesce(((m.sender = $20::bytea) or (m.receiver = $21::bytea) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_token = $22::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.dest_token = $23::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_pool = $24::bytea))), false)
      order by t.sent_at desc, t.message_id desc limit 1001) union all (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where t.source_pool = $25::bytea and coalesce(((m.sender = $26::bytea) or (m.receiver = $27::bytea) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_token = $28::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.dest_token = $29::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_pool = $30::bytea))), false)
      order by t.sent_at desc, t.message_id desc limit 1001)) scans
    order by sent_at desc, message_id desc limit 1001) page where ((select true from message m where m.sender = $31::bytea
      order by m.sent_at desc, m.message_id desc limit 1) is not null or (select true from message m where m.receiver = $32::bytea
      order by m.sent_at desc, m.message_id desc limit 1) is not null or (select true from message_token t where t.source_token = $33::bytea
      order by t.sent_at desc, t.message_id desc limit 1) is not null or (select true from message_token t where t.dest_token = $34::bytea
      order by t.sent_at desc, t.message_id desc limit 1) is not null or (select true from message_token t where t.source_pool = $35::bytea
      order by t.sent_at desc, t.message_id desc limit 1) is not null) limit $36;

-- Several at once: one is spread out, the others are conditions.
select digest, body, encode(message_id, 'hex'), extract(epoch from sent_at)
    from (select distinct on (sent_at, message_id) sent_at, message_id, digest, body
    from ((select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where search_key(m.sender, m.receiver, null, null) = search_key($1::bytea, $2::bytea, null, null) and coalesce(m.sender = $3::bytea, false) and coalesce(m.receiver = $4::bytea, false) and coalesce(((exists (select 1 from message_token t where t.message_id = m.message_id and t.source_token = $5::bytea))), false) and coalesce(((m.status = 0) or (m.status = 6)), false)
      order by m.sent_at desc, m.message_id desc limit 1001) union all (select m.sent_at, m.message_id, m.digest, m.record as body from message m
      where (m.origin = $6::bytea and m.origin <> m.sender) and coalesce(m.sender = $7::bytea, false) and coalesce(((exists (select 1 from message_token t where t.message_id = m.message_id and t.source_token = $8::bytea))), false) and coalesce(((m.status = 0) or (m.status = 6)), false)
      order by m.sent_at desc, m.message_id desc limit 1001)) scans
    order by sent_at desc, message_id desc limit 1001) page where ((select true from message_token t where t.source_token = $9::bytea
      order by t.sent_at desc, t.message_id desc limit 1) is not null) limit $10;

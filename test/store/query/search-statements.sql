-- The SQL of the search as it is sent. Written by explain.test.ts; update with `npx vitest run test/store/query/explain.test.ts -u`.

-- The newest messages.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where m.sequence_number >= 0
      order by m.sort_key desc, m.message_id desc limit $1) page limit $2;

-- The newest messages, summary view, behind a cursor.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select m.sort_key, m.message_id, m.digest, left(m.record, m.summary_length) || '}' as body from message m
      where m.sequence_number >= 0 and m.sort_key <= $1::bigint and (m.sort_key, m.message_id) < ($2::bigint, $3::bytea)
      order by m.sort_key desc, m.message_id desc limit $4) page limit $5;

-- By sender.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where substr(m.sender, 1, 7) = $1::bytea and coalesce(m.sender = $2::bytea, false)
      order by m.sort_key desc, m.message_id desc limit $3) page limit $4;

-- By receiver on SVM.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where substr(m.receiver, 1, 7) = $1::bytea and coalesce(m.receiver = $2::bytea, false)
      order by m.sort_key desc, m.message_id desc limit $3) page limit $4;

-- A lane.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where m.source_selector = $1::bigint and m.dest_selector = $2::bigint
      order by m.sort_key desc, m.message_id desc limit $3) page limit $4;

-- Ready for manual execution.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where m.ready and m.sequence_number >= 0
      order by m.sort_key desc, m.message_id desc limit $1) page limit $2;

-- By source transaction.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where substr(m.send_transaction, 1, 7) = $1::bytea and coalesce(m.send_transaction = $2::bytea, false)
      order by m.sort_key desc, m.message_id desc limit $3) page limit $4;

-- By one status.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where m.status = 6 and m.sequence_number >= 0
      order by m.sort_key desc, m.message_id desc limit $1) page limit $2;

-- By several statuses, behind a cursor.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select distinct on (sort_key, message_id) sort_key, message_id, digest, body
    from ((select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where m.status = 2 and m.sequence_number >= 0 and m.sort_key <= $1::bigint and (m.sort_key, m.message_id) < ($2::bigint, $3::bytea)
      order by m.sort_key desc, m.message_id desc limit $4) union all (select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where m.status = 3 and m.sequence_number >= 0 and m.sort_key <= $5::bigint and (m.sort_key, m.message_id) < ($6::bigint, $7::bytea)
      order by m.sort_key desc, m.message_id desc limit $8)) scans
    order by sort_key desc, message_id desc limit $9) page limit $10;

-- Sent in a period.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where m.sequence_number >= 0 and m.sort_key >= $1::bigint and m.sort_key < $2::bigint
      order by m.sort_key desc, m.message_id desc limit $3) page limit $4;

-- By address: sender, receiver or origin.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select distinct on (sort_key, message_id) sort_key, message_id, digest, body
    from ((select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where substr(m.sender, 1, 7) = $1::bytea and coalesce(m.sender = $2::bytea, false)
      order by m.sort_key desc, m.message_id desc limit $3) union all (select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where substr(m.receiver, 1, 7) = $4::bytea and coalesce(m.receiver = $5::bytea, false)
      order by m.sort_key desc, m.message_id desc limit $6) union all (select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where substr(m.origin, 1, 7) = $7::bytea and m.origin <> m.sender and coalesce((m.origin = $8::bytea and m.origin <> m.sender), false)
      order by m.sort_key desc, m.message_id desc limit $9)) scans
    order by sort_key desc, message_id desc limit $10) page limit $11;

-- By source token.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select distinct on (r.sort_key, r.message_id) r.* from (select t.sort_key, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where substr(t.source_token, 1, 7) = $1::bytea and coalesce(t.source_token = $2::bytea, false)
      order by t.sort_key desc, t.message_id desc) r
      order by r.sort_key desc, r.message_id desc limit $3) page limit $4;

-- By source token, to a network.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select of_lane.* from (select distinct source_selector, dest_selector from lane_total where dest_selector = $1::bigint) l cross join lateral (select distinct on (r.sort_key, r.message_id) r.* from (select t.sort_key, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where search_key(t.source_token, null, t.source_selector, t.dest_selector) = search_key($2::bytea, null, l.source_selector, l.dest_selector) and coalesce(t.source_token = $3::bytea, false) and coalesce(m.dest_selector = $4::bigint, false)
      order by t.sort_key desc, t.message_id desc) r
      order by r.sort_key desc, r.message_id desc limit $5) of_lane
      order by of_lane.sort_key desc, of_lane.message_id desc limit $6) page limit $7;

-- By destination transaction.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select distinct on (sort_key, message_id) sort_key, message_id, digest, body
    from ((select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where substr(m.receipt_transaction, 1, 7) = $1::bytea and coalesce(m.receipt_transaction = $2::bytea, false)
      order by m.sort_key desc, m.message_id desc limit $3) union all (select m.sort_key, m.message_id, m.digest, m.record as body from (select * from message m where m.message_id = any(array(select f.message_id from fact f where f.kind = 7 and substr(f.transaction, 1, 7) = $4::bytea and f.transaction = $5::bytea
    union all select e.message_id from earlier_attempt e where e.kind = 7 and substr(e.transaction, 1, 7) = $6::bytea and e.transaction = $7::bytea
    union all select c.message_id from lane_fact r cross join lateral (
      select message_id from message
      where source_selector = r.source_selector and dest_selector = r.dest_selector and onramp = r.onramp
        and sequence_number between r.from_sequence and r.to_sequence
      order by source_selector, dest_selector, sequence_number limit 512) c where substr(r.transaction, 1, 7) = $8::bytea and r.transaction = $9::bytea
    union all select c.message_id from root_blessing b cross join lateral (
        select * from lane_fact where substr(merkle_root, 1, 7) = substr(b.merkle_root, 1, 7) and merkle_root = b.merkle_root and network = b.network limit 64) r
      cross join lateral (
      select message_id from message
      where source_selector = r.source_selector and dest_selector = r.dest_selector and onramp = r.onramp
        and sequence_number between r.from_sequence and r.to_sequence
      order by source_selector, dest_selector, sequence_number limit 512) c where substr(b.transaction, 1, 7) = $10::bytea and b.transaction = $11::bytea)) offset 0) m
      where true
      order by m.sort_key desc, m.message_id desc limit $12)) scans
    order by sort_key desc, message_id desc limit $13) page limit $14;

-- By message ids.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select m.sort_key, m.message_id, m.digest, m.record as body from (select * from message m where m.message_id = any($1::bytea[]) offset 0) m
      where true
      order by m.sort_key desc, m.message_id desc limit $2) page limit $3;

-- By an address as a search term.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select distinct on (sort_key, message_id) sort_key, message_id, digest, body
    from ((select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where substr(m.sender, 1, 7) = $1::bytea and coalesce(m.sender = $2::bytea, false)
      order by m.sort_key desc, m.message_id desc limit $3) union all (select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where substr(m.receiver, 1, 7) = $4::bytea and coalesce(m.receiver = $5::bytea, false)
      order by m.sort_key desc, m.message_id desc limit $6) union all (select distinct on (r.sort_key, r.message_id) r.* from (select t.sort_key, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where substr(t.source_token, 1, 7) = $7::bytea and coalesce(t.source_token = $8::bytea, false)
      order by t.sort_key desc, t.message_id desc) r
      order by r.sort_key desc, r.message_id desc limit $9) union all (select distinct on (r.sort_key, r.message_id) r.* from (select t.sort_key, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where substr(t.dest_token, 1, 7) = $10::bytea and coalesce(t.dest_token = $11::bytea, false)
      order by t.sort_key desc, t.message_id desc) r
      order by r.sort_key desc, r.message_id desc limit $12) union all (select distinct on (r.sort_key, r.message_id) r.* from (select t.sort_key, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where substr(t.source_pool, 1, 7) = $13::bytea and coalesce(t.source_pool = $14::bytea, false)
      order by t.sort_key desc, t.message_id desc) r
      order by r.sort_key desc, r.message_id desc limit $15)) scans
    order by sort_key desc, message_id desc limit $16) page limit $17;

-- By a hash or id as a search term.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select distinct on (sort_key, message_id) sort_key, message_id, digest, body
    from ((select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where substr(m.sender, 1, 7) = $1::bytea and coalesce(m.sender = $2::bytea, false)
      order by m.sort_key desc, m.message_id desc limit $3) union all (select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where substr(m.receiver, 1, 7) = $4::bytea and coalesce(m.receiver = $5::bytea, false)
      order by m.sort_key desc, m.message_id desc limit $6) union all (select distinct on (r.sort_key, r.message_id) r.* from (select t.sort_key, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where substr(t.source_token, 1, 7) = $7::bytea and coalesce(t.source_token = $8::bytea, false)
      order by t.sort_key desc, t.message_id desc) r
      order by r.sort_key desc, r.message_id desc limit $9) union all (select distinct on (r.sort_key, r.message_id) r.* from (select t.sort_key, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where substr(t.dest_token, 1, 7) = $10::bytea and coalesce(t.dest_token = $11::bytea, false)
      order by t.sort_key desc, t.message_id desc) r
      order by r.sort_key desc, r.message_id desc limit $12) union all (select distinct on (r.sort_key, r.message_id) r.* from (select t.sort_key, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where substr(t.source_pool, 1, 7) = $13::bytea and coalesce(t.source_pool = $14::bytea, false)
      order by t.sort_key desc, t.message_id desc) r
      order by r.sort_key desc, r.message_id desc limit $15) union all (select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where substr(m.send_transaction, 1, 7) = $16::bytea and coalesce(m.send_transaction = $17::bytea, false)
      order by m.sort_key desc, m.message_id desc limit $18) union all (select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where substr(m.receipt_transaction, 1, 7) = $19::bytea and coalesce(m.receipt_transaction = $20::bytea, false)
      order by m.sort_key desc, m.message_id desc limit $21) union all (select m.sort_key, m.message_id, m.digest, m.record as body from (select * from message m where m.message_id = any(array(select f.message_id from fact f where f.kind = 7 and substr(f.transaction, 1, 7) = $22::bytea and f.transaction = $23::bytea
    union all select e.message_id from earlier_attempt e where e.kind = 7 and substr(e.transaction, 1, 7) = $24::bytea and e.transaction = $25::bytea
    union all select c.message_id from lane_fact r cross join lateral (
      select message_id from message
      where source_selector = r.source_selector and dest_selector = r.dest_selector and onramp = r.onramp
        and sequence_number between r.from_sequence and r.to_sequence
      order by source_selector, dest_selector, sequence_number limit 512) c where substr(r.transaction, 1, 7) = $26::bytea and r.transaction = $27::bytea
    union all select c.message_id from root_blessing b cross join lateral (
        select * from lane_fact where substr(merkle_root, 1, 7) = substr(b.merkle_root, 1, 7) and merkle_root = b.merkle_root and network = b.network limit 64) r
      cross join lateral (
      select message_id from message
      where source_selector = r.source_selector and dest_selector = r.dest_selector and onramp = r.onramp
        and sequence_number between r.from_sequence and r.to_sequence
      order by source_selector, dest_selector, sequence_number limit 512) c where substr(b.transaction, 1, 7) = $28::bytea and b.transaction = $29::bytea)) offset 0) m
      where true
      order by m.sort_key desc, m.message_id desc limit $30) union all (select m.sort_key, m.message_id, m.digest, m.record as body from (select * from message m where m.message_id = any($31::bytea[]) offset 0) m
      where true
      order by m.sort_key desc, m.message_id desc limit $32)) scans
    order by sort_key desc, message_id desc limit $33) page limit $34;

-- By two addresses as search terms.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select distinct on (sort_key, message_id) sort_key, message_id, digest, body
    from ((select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where substr(m.sender, 1, 7) = $1::bytea and coalesce(m.sender = $2::bytea, false) and coalesce(((m.sender = $3::bytea) or (m.receiver = $4::bytea) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_token = $5::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.dest_token = $6::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_pool = $7::bytea))), false)
      order by m.sort_key desc, m.message_id desc limit $8) union all (select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where substr(m.receiver, 1, 7) = $9::bytea and coalesce(m.receiver = $10::bytea, false) and coalesce(((m.sender = $11::bytea) or (m.receiver = $12::bytea) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_token = $13::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.dest_token = $14::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_pool = $15::bytea))), false)
      order by m.sort_key desc, m.message_id desc limit $16) union all (select distinct on (r.sort_key, r.message_id) r.* from (select t.sort_key, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where substr(t.source_token, 1, 7) = $17::bytea and coalesce(t.source_token = $18::bytea, false) and coalesce(((m.sender = $19::bytea) or (m.receiver = $20::bytea) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_token = $21::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.dest_token = $22::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_pool = $23::bytea))), false)
      order by t.sort_key desc, t.message_id desc) r
      order by r.sort_key desc, r.message_id desc limit $24) union all (select distinct on (r.sort_key, r.message_id) r.* from (select t.sort_key, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where substr(t.dest_token, 1, 7) = $25::bytea and coalesce(t.dest_token = $26::bytea, false) and coalesce(((m.sender = $27::bytea) or (m.receiver = $28::bytea) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_token = $29::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.dest_token = $30::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_pool = $31::bytea))), false)
      order by t.sort_key desc, t.message_id desc) r
      order by r.sort_key desc, r.message_id desc limit $32) union all (select distinct on (r.sort_key, r.message_id) r.* from (select t.sort_key, t.message_id, m.digest, m.record as body from message_token t join message m on m.message_id = t.message_id
      where substr(t.source_pool, 1, 7) = $33::bytea and coalesce(t.source_pool = $34::bytea, false) and coalesce(((m.sender = $35::bytea) or (m.receiver = $36::bytea) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_token = $37::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.dest_token = $38::bytea)) or (exists (select 1 from message_token t where t.message_id = m.message_id and t.source_pool = $39::bytea))), false)
      order by t.sort_key desc, t.message_id desc) r
      order by r.sort_key desc, r.message_id desc limit $40)) scans
    order by sort_key desc, message_id desc limit $41) page where ((select true from message m where substr(m.sender, 1, 7) = $42::bytea
      order by m.sort_key desc limit 1) is not null or (select true from message m where substr(m.receiver, 1, 7) = $43::bytea
      order by m.sort_key desc limit 1) is not null or (select true from message_token t where substr(t.source_token, 1, 7) = $44::bytea
      order by t.sort_key desc limit 1) is not null or (select true from message_token t where substr(t.dest_token, 1, 7) = $45::bytea
      order by t.sort_key desc limit 1) is not null or (select true from message_token t where substr(t.source_pool, 1, 7) = $46::bytea
      order by t.sort_key desc limit 1) is not null) limit $47;

-- Several at once: one is spread out, the others are conditions.
select digest, body, encode(message_id, 'hex'), sort_key
    from (select distinct on (sort_key, message_id) sort_key, message_id, digest, body
    from ((select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where search_key(m.sender, m.receiver, null, null) = search_key($1::bytea, $2::bytea, null, null) and coalesce(m.sender = $3::bytea, false) and coalesce(m.receiver = $4::bytea, false) and coalesce(((exists (select 1 from message_token t where t.message_id = m.message_id and t.source_token = $5::bytea))), false) and coalesce(((m.status = 0) or (m.status = 6)), false)
      order by m.sort_key desc, m.message_id desc limit $6) union all (select m.sort_key, m.message_id, m.digest, m.record as body from message m
      where substr(m.origin, 1, 7) = $7::bytea and m.origin <> m.sender and coalesce(m.sender = $8::bytea, false) and coalesce((m.origin = $9::bytea and m.origin <> m.sender), false) and coalesce(((exists (select 1 from message_token t where t.message_id = m.message_id and t.source_token = $10::bytea))), false) and coalesce(((m.status = 0) or (m.status = 6)), false)
      order by m.sort_key desc, m.message_id desc limit $11)) scans
    order by sort_key desc, message_id desc limit $12) page where ((select true from message_token t where substr(t.source_token, 1, 7) = $13::bytea
      order by t.sort_key desc limit 1) is not null) limit $14;

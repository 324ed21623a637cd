-- The SQL of the search as it is sent. Written by explain.test.ts; update with `npx vitest run test/store/explain.test.ts -u`.

-- The newest messages.
select body from (select m.sent_at, m.message_id, m.record as body from message m
      where true
      order by m.sent_at desc, m.message_id desc limit $1) page;

-- The newest messages, summary view, behind a cursor.
select body from (select m.sent_at, m.message_id, left(m.record, m.summary_length) || '}' as body from message m
      where true and (m.sent_at, m.message_id) < ($1::timestamptz, $2::bytea)
      order by m.sent_at desc, m.message_id desc limit $3) page;

-- By sender.
select body from (select m.sent_at, m.message_id, m.record as body from message m
      where m.sender = $1::bytea
      order by m.sent_at desc, m.message_id desc limit $2) page;

-- By receiver on SVM.
select body from (select m.sent_at, m.message_id, m.record as body from message m
      where m.receiver = $1::bytea
      order by m.sent_at desc, m.message_id desc limit $2) page;

-- A lane.
select body from (select m.sent_at, m.message_id, m.record as body from message m
      where true and m.source_selector = $1::bigint and m.dest_selector = $2::bigint
      order by m.sent_at desc, m.message_id desc limit $3) page;

-- Ready for manual execution.
select body from (select m.sent_at, m.message_id, m.record as body from message m
      where true and m.ready
      order by m.sent_at desc, m.message_id desc limit $1) page;

-- By source transaction.
select body from (select m.sent_at, m.message_id, m.record as body from message m
      where m.send_transaction = $1::bytea
      order by m.sent_at desc, m.message_id desc limit $2) page;

-- By one status.
select body from (select m.sent_at, m.message_id, m.record as body from message m
      where m.status = $1::smallint
      order by m.sent_at desc, m.message_id desc limit $2) page;

-- By several statuses, behind a cursor.
select body from (
    select distinct on (sent_at, message_id) sent_at, message_id, body
    from ((select m.sent_at, m.message_id, m.record as body from message m
      where m.status = $1::smallint and (m.sent_at, m.message_id) < ($2::timestamptz, $3::bytea)
      order by m.sent_at desc, m.message_id desc limit $4) union all (select m.sent_at, m.message_id, m.record as body from message m
      where m.status = $5::smallint and (m.sent_at, m.message_id) < ($6::timestamptz, $7::bytea)
      order by m.sent_at desc, m.message_id desc limit $8)) scans
    order by sent_at desc, message_id desc limit $9) page;

-- Sent in a period.
select body from (select m.sent_at, m.message_id, m.record as body from message m
      where true and m.sent_at >= $1::timestamptz and m.sent_at < $2::timestamptz
      order by m.sent_at desc, m.message_id desc limit $3) page;

-- By address: sender, receiver or origin.
select body from (
    select distinct on (sent_at, message_id) sent_at, message_id, body
    from ((select m.sent_at, m.message_id, m.record as body from message m
      where m.sender = $1::bytea
      order by m.sent_at desc, m.message_id desc limit $2) union all (select m.sent_at, m.message_id, m.record as body from message m
      where m.receiver = $3::bytea
      order by m.sent_at desc, m.message_id desc limit $4) union all (select m.sent_at, m.message_id, m.record as body from message m
      where m.origin = $5::bytea
      order by m.sent_at desc, m.message_id desc limit $6)) scans
    order by sent_at desc, message_id desc limit $7) page;

-- By source token.
select body from (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.record as body from message_token t join message m on m.message_id = t.message_id
      where t.source_token = $1::bytea
      order by t.sent_at desc, t.message_id desc limit $2) page;

-- By destination transaction.
select body from (select m.sent_at, m.message_id, m.record as body from message m
      where m.receipt_transaction = $1::bytea
      order by m.sent_at desc, m.message_id desc limit $2) page;

-- By message ids.
select body from (select m.sent_at, m.message_id, m.record as body from message m
      where true and m.message_id = any($1::bytea[])
      order by m.sent_at desc, m.message_id desc limit $2) page;

-- By an address as a search term.
select body from (
    select distinct on (sent_at, message_id) sent_at, message_id, body
    from ((select m.sent_at, m.message_id, m.record as body from message m
      where m.sender = $1::bytea
      order by m.sent_at desc, m.message_id desc limit $2) union all (select m.sent_at, m.message_id, m.record as body from message m
      where m.receiver = $3::bytea
      order by m.sent_at desc, m.message_id desc limit $4) union all (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.record as body from message_token t join message m on m.message_id = t.message_id
      where t.source_token = $5::bytea
      order by t.sent_at desc, t.message_id desc limit $6) union all (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.record as body from message_token t join message m on m.message_id = t.message_id
      where t.dest_token = $7::bytea
      order by t.sent_at desc, t.message_id desc limit $8) union all (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.record as body from message_token t join message m on m.message_id = t.message_id
      where t.source_pool = $9::bytea
      order by t.sent_at desc, t.message_id desc limit $10)) scans
    order by sent_at desc, message_id desc limit $11) page;

-- By a hash or id as a search term.
select body from (
    select distinct on (sent_at, message_id) sent_at, message_id, body
    from ((select m.sent_at, m.message_id, m.record as body from message m
      where m.sender = $1::bytea
      order by m.sent_at desc, m.message_id desc limit $2) union all (select m.sent_at, m.message_id, m.record as body from message m
      where m.receiver = $3::bytea
      order by m.sent_at desc, m.message_id desc limit $4) union all (select m.sent_at, m.message_id, m.record as body from message m
      where m.send_transaction = $5::bytea
      order by m.sent_at desc, m.message_id desc limit $6) union all (select m.sent_at, m.message_id, m.record as body from message m
      where m.receipt_transaction = $7::bytea
      order by m.sent_at desc, m.message_id desc limit $8) union all (select m.sent_at, m.message_id, m.record as body from message m
      where m.message_id = $9::bytea
      order by m.sent_at desc, m.message_id desc limit $10) union all (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.record as body from message_token t join message m on m.message_id = t.message_id
      where t.source_token = $11::bytea
      order by t.sent_at desc, t.message_id desc limit $12) union all (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.record as body from message_token t join message m on m.message_id = t.message_id
      where t.dest_token = $13::bytea
      order by t.sent_at desc, t.message_id desc limit $14) union all (select distinct on (t.sent_at, t.message_id) t.sent_at, t.message_id, m.record as body from message_token t join message m on m.message_id = t.message_id
      where t.source_pool = $15::bytea
      order by t.sent_at desc, t.message_id desc limit $16)) scans
    order by sent_at desc, message_id desc limit $17) page;

-- Several at once: one is spread out, the others are conditions.
select body from (select m.sent_at, m.message_id, m.record as body from message m
      where m.sender = $1::bytea and (m.sender = $2::bytea or m.receiver = $3::bytea or m.origin = $4::bytea) and (exists (select from message_token t where t.message_id = m.message_id and (t.source_token = $5::bytea))) and (m.status = $6::smallint or m.status = $7::smallint)
      order by m.sent_at desc, m.message_id desc limit $8) page;

-- The position counts changes of records. A search also finds messages by facts that change no record (a further attempt, a
-- second commit, a blessing), so response caches and replicas need a number that grows with every write. Older programs go on
-- reading; the guard keeps those from writing that would not raise it.
alter table store add column revision bigint not null default 0;

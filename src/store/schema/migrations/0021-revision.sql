-- The position counts changes of records. A search also finds messages by facts that change no record (a further attempt, a
-- second commit, a blessing), so response caches and replicas need a number that grows with every write. The guard keeps older
-- programs from writing, which would not raise it. A table of its own, with one row: a column of `store` would wait for readers.
create table store_revision (
  singleton boolean primary key default true check (singleton),
  revision bigint not null default 0
);
insert into store_revision default values;

-- The secret key of the cursors' MAC: one row of 32 random bytes.
--
-- It is in the database so that all servers on it agree, and so that cursors survive restarts, backups and replication.
-- It has a table of its own because every write rewrites the row of `store`, while the key never changes.
--
-- gen_random_uuid() takes its bits from PostgreSQL's cryptographically strong source, 122 of them in each UUID. SHA-256
-- condenses 366 into a key of 256. Core PostgreSQL has no function for random bytes; pgcrypto is an extension.
create table cursor_key (
  singleton boolean primary key default true check (singleton),
  key bytea not null check (octet_length(key) = 32)
    default sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
);
insert into cursor_key default values;

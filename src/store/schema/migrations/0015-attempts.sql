-- What executions return, and so why they failed, was not kept until now. Networks that have been indexed read the events of
-- their off-ramps once more; the next start of an indexer puts them on the backlog.
alter table index_network add column lacks_attempts boolean not null default false;
update index_network set lacks_attempts = true where followed_from is not null;

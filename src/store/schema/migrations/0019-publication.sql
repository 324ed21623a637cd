-- On a cluster a transaction becomes visible on its nodes at different moments. Its positions are therefore assigned in the
-- transaction, and published (`store.position`) in a second one, when all rows are visible. A new table only: readers and
-- writers go on. It has one row on a cluster, and none on one node.
create table publication (
  singleton boolean primary key default true check (singleton),
  -- The last position that a writer has assigned.
  assigned_position bigint not null,
  -- False from the commit of a writer until its rows were seen on all nodes.
  is_published boolean not null default true
);

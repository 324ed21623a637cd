-- What chains tell of merkle roots.

-- A blessing names a root only, and its commit may have come before or be yet to come.
alter table lane_fact add column merkle_root bytea;
update lane_fact set merkle_root = decode(substr(body::json ->> 'merkleRoot', 3), 'hex')
  where body::json ->> 'merkleRoot' ~ '^0x([0-9a-fA-F]{2})+$';
create index lane_fact_root on lane_fact (network, merkle_root);

create table root_blessing (
  network bigint not null,
  merkle_root bytea not null,
  fact_id bytea not null,
  block_hash text not null,
  body text not null,
  primary key (network, merkle_root, fact_id)
);
create index root_blessing_block on root_blessing (network, block_hash);

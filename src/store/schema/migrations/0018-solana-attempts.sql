-- How executions on Solana failed was not kept until now. The networks that have programs instead of contracts read the
-- transactions of their off-ramps once more; the next start of an indexer puts them on the backlog.
update index_network set lacks_attempts = true
where followed_from is not null
  and selector in (select network from index_contract where body::json ->> 'program' is not null);

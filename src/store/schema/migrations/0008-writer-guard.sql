-- Writers declare the schema they know, and the database refuses those that know an older one.
--
-- A writer that was started before an upgrade does not see the new schema: it would write rows without what the new
-- schema derives from them. Every connection of Lanescan therefore sets `lanescan.schema` to the number of the latest
-- migration it knows. Programs from before this migration set nothing. After every upgrade, `migrate` puts this trigger
-- on each table, with the number of the schema as its argument.
--
-- The class of the error, 57 (operator intervention), makes older programs show the message instead of a stack trace,
-- and keep what they have to write.
create function refuse_older_writer() returns trigger language plpgsql as $$
declare
  declared text := nullif(current_setting('lanescan.schema', true), '');
begin
  if coalesce(declared, '0')::integer < tg_argv[0]::integer then
    raise exception using
      errcode = '57L01',
      message = format(
        'the database was upgraded by a newer Lanescan (schema %s; this program knows %s), nothing was written: upgrade this program',
        tg_argv[0], coalesce(declared, 'an older one')),
      detail = tg_argv[0],
      hint = format('To change rows by hand, first run: set lanescan.schema = %L', tg_argv[0]);
  end if;
  return null;
end
$$;

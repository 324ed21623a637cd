/** The tables that docs/cluster.md says can be distributed by message id, against the catalog of the real schema. */
import { readFileSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { createTestDatabase } from '../database.ts';
import { connectForTest } from '../postgres.ts';

const guide = readFileSync(new URL('../../docs/cluster.md', import.meta.url), 'utf8');

/** The text of the section, up to its table of exceptions, and that table. */
function documentedSection(): {
  readonly distributable: readonly string[];
  readonly others: readonly string[];
} {
  const section = guide.split('## Sharding by message id\n')[1]?.split('\n## ')[0] ?? '';
  const names = (text: string) => [...text.matchAll(/`([a-z_]+)`/g)].flatMap(([, name]) => name ?? []).sort();
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  const [introduction = ''] = section.split('\n|');
  return {
    distributable: names(introduction),
    others: rows.flatMap((row) => names(row.split('|')[1] ?? '')).sort(),
  };
}

it('exactly the tables that docs/cluster.md names have a unique constraint without the message id', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const client = await connectForTest(database.url);

  // A table without any unique index counts as one that can be distributed: nothing binds it. There is none so far.
  const { rows } = await client.query<{ table: string; lacks: boolean }>(
    `select relation.relname as table, exists (
       select from pg_index unique_index
       where unique_index.indrelid = relation.oid and unique_index.indisunique and not exists (
         select from pg_attribute attribute
         where attribute.attrelid = relation.oid and attribute.attname = 'message_id'
           and attribute.attnum = any (unique_index.indkey::int2[])
       )
     ) as lacks
     from pg_class relation
     where relation.relkind = 'r' and relation.relnamespace = 'public'::regnamespace
     order by 1`,
  );
  const tables = (lacks: boolean) => rows.flatMap((row) => (row.lacks === lacks ? [row.table] : []));
  const { distributable, others } = documentedSection();
  const advice = 'name the table in "Sharding by message id" of docs/cluster.md, with the reason';
  expect(tables(true), advice).toEqual(others);
  expect(tables(false), advice).toEqual(distributable);
});

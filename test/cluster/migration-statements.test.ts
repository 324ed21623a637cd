/** Migrations of distributed tables run statement by statement, with the same result. */

import { readdirSync, readFileSync } from 'node:fs';
import type pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { splitStatements } from '../../src/store/cluster/migration-statements.ts';
import { createTestDatabase } from '../database.ts';
import { connectTo } from '../postgres.ts';

const folder = new URL('../../src/store/schema/migrations/', import.meta.url);

it.each([
  ['', []],
  ['-- only; a comment\n', []],
  ['select 1', ['select 1']],
  ['select \';\' as "a;b"; -- last;\nselect 2;\n', ['select \';\' as "a;b"', '-- last;\nselect 2']],
  ['/* a; b */ select 1; ;', ['/* a; b */ select 1']],
  ["do $$ begin perform 1; end $$; select 'it''s;'", ['do $$ begin perform 1; end $$', "select 'it''s;'"]],
  ['do $x$ begin perform $$;$$; end $x$;', ['do $x$ begin perform $$;$$; end $x$']],
])('%j has the statements %j', (text, statements) => {
  expect(splitStatements(text)).toEqual(statements);
});

it('migrations run statement by statement make the same schema as run whole', async () => {
  const schemaOf = async (run: (client: pg.Client, text: string) => Promise<void>) => {
    const database = await createTestDatabase({ empty: true });
    onTestFinished(() => database.drop());
    const client = await connectTo(database.url);
    onTestFinished(() => client.end());
    for (const file of readdirSync(folder).sort())
      await run(client, readFileSync(new URL(file, folder), 'utf8'));
    const { rows } = await client.query(
      `select format('%s %s %s %s', table_name, column_name, data_type, column_default) as line
       from information_schema.columns where table_schema = 'public'
       union all select indexdef from pg_indexes where schemaname = 'public'
       union all select pg_get_constraintdef(oid) from pg_constraint where connamespace = 'public'::regnamespace
       union all select pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace
       order by 1`,
    );
    return rows.map(({ line }) => line);
  };
  const whole = await schemaOf(async (client, text) => void (await client.query(text)));
  const split = await schemaOf(async (client, text) => {
    await client.query('begin');
    for (const statement of splitStatements(text)) await client.query(statement);
    await client.query('commit');
  });
  expect(whole.length).toBeGreaterThan(100);
  expect(split).toEqual(whole);
});

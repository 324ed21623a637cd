/** A database with the schema of an earlier release, made of the same migration files as that release had. */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type pg from 'pg';

const folder = new URL('../../src/store/schema/migrations/', import.meta.url);

/** Applies the migrations up to this number to an empty database, and makes the row of the store. */
export async function makeOlderSchema(client: pg.ClientBase, latest: number): Promise<void> {
  await client.query(
    `create table migration (number integer primary key, name text not null, checksum text not null,
                             applied_at timestamptz not null default now())`,
  );
  const files = (await readdir(folder)).filter((file) => Number.parseInt(file, 10) <= latest).sort();
  for (const file of files) {
    const text = await readFile(new URL(file, folder), 'utf8');
    await client.query(text);
    await client.query('insert into migration (number, name, checksum) values ($1, $2, $3)', [
      Number.parseInt(file, 10),
      file.replace('.sql', ''),
      createHash('sha256').update(text).digest('hex'),
    ]);
  }
  await client.query('insert into store (simulated) values (false)');
}

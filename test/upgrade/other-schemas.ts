/** Schemas of other versions: those from before the baseline, and that of the next release. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type pg from 'pg';
import { onTestFinished } from 'vitest';
import { knownSchema, migrate } from '../../src/store/schema/migrate.ts';
import { guardWriters } from '../../src/store/schema/writer-guard.ts';

/** The schema that the baseline makes, and the checksum of the last migration it replaced. */
export const BASELINE = 21;
const REPLACED_CHECKSUM = '2fd39d0237026f3fb453d3838813305f6bad38552be4da0acc1dadc267b01f17';

/**
 * Turns an empty database into one with the migrations up to this number, as versions before the baseline recorded them.
 * Only the last of these schemas has its tables here: earlier ones are rejected before any table is read.
 */
export async function makeDevelopmentSchema(client: pg.ClientBase, latest: number): Promise<void> {
  if (latest === BASELINE) {
    await migrate(client, { upTo: BASELINE });
    await client.query('truncate migration; insert into store (simulated) values (false)');
  } else {
    await client.query('create table migration (number integer primary key, name text, checksum text)');
  }
  await client.query(
    `insert into migration (number, name, checksum)
     select number, format('%s-old', to_char(number, 'FM0000')), case number when ${BASELINE} then $2 else 'x' end
     from generate_series(1, $1::int) as number`,
    [latest, REPLACED_CHECKSUM],
  );
}

/** The migrations of this program with one more, of this text, as the next release would have them. */
export async function nextMigrations(text: string): Promise<{ readonly folder: URL; readonly name: string }> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'lanescan-migrations-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(path.resolve(import.meta.dirname, '../../src/store/schema/migrations'), folder, { recursive: true });
  const name = `${String((await knownSchema()) + 1).padStart(4, '0')}-next`;
  writeFileSync(path.join(folder, `${name}.sql`), text);
  return { folder: pathToFileURL(`${folder}/`), name };
}

/** Marks the database as one that a newer release, with one more migration, has upgraded; returns its schema. */
export async function markUpgraded(client: pg.ClientBase): Promise<number> {
  const next = (await knownSchema()) + 1;
  await client.query(
    `insert into migration (number, name, checksum) values (${next}, '${next}-future', 'x')`,
  );
  await guardWriters(client, next);
  return next;
}

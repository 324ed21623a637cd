/** Database roles: what the current role may do, and granting read access to another one. */
import type { ClientBase } from 'pg';
import { OperatorError } from '../../base/operator-error.ts';
import { inTransaction } from './client.ts';

/** Whether this role may only read: by its privileges, or because the server is read-only (a replica). */
export async function isReadOnly(client: ClientBase): Promise<boolean> {
  const { rows } = await client.query(
    `select current_setting('transaction_read_only') = 'on' or not has_table_privilege('store', 'update') as answer`,
  );
  return rows[0].answer;
}

/** Throws an OperatorError that names the tables which this role may not read, if there are any. */
export async function requireReadableTables(client: ClientBase): Promise<void> {
  const { rows } = await client.query(
    `${OUR_TABLES} and not has_table_privilege(c.oid, 'select') order by c.relname`,
  );
  if (rows.length > 0) throw await unreadableError(client, rows.map(({ name }) => name).join(', '));
}

/**
 * Lets a role read all our tables, and those that later migrations by the current role create; nothing else.
 * Throws an OperatorError when there is no such role or the current one may not grant; then nothing is granted.
 */
export async function grantRead(client: ClientBase, role: string): Promise<void> {
  const { rows: known } = await client.query('select from pg_roles where rolname = $1', [role]);
  if (known.length === 0) {
    throw new OperatorError(
      `There is no database role ${client.escapeIdentifier(role)} to grant reading to.`,
      `Make it first, with a password of its own: create role ${client.escapeIdentifier(role)} login password '…'`,
    );
  }
  const { rows: tables } = await client.query(`${OUR_TABLES} order by c.oid`);
  const { rows: places } = await client.query(
    `select current_database() as database, relnamespace::regnamespace::text as schema,
            has_database_privilege($1, current_database(), 'connect') as may_connect,
            has_schema_privilege($1, relnamespace, 'usage') as may_use
     from pg_class where oid = 'migration'::regclass`,
    [role],
  );
  const { database, schema, may_connect: mayConnect, may_use: mayUse } = places[0];
  const grantee = client.escapeIdentifier(role);
  const grant = async () => {
    // PUBLIC often has these two privileges, and the owner of the tables may not be allowed to grant them.
    if (!mayConnect)
      await client.query(`grant connect on database ${client.escapeIdentifier(database)} to ${grantee}`);
    if (!mayUse) await client.query(`grant usage on schema ${schema} to ${grantee}`);
    await client.query(`grant select on ${tables.map(({ name }) => name).join(', ')} to ${grantee}`);
    await client.query(`alter default privileges in schema ${schema} grant select on tables to ${grantee}`);
    // PostgreSQL only warns where the current role may not grant.
    const { rows: left } = await client.query(
      `${OUR_TABLES} and not has_table_privilege($1, c.oid, 'select')`,
      [role],
    );
    if (left.length > 0) throw new Error(`permission denied for table ${left[0].name}`);
  };
  await inTransaction(client, grant).catch(async (error: Error) => {
    throw new OperatorError(
      `The role ${await roleName(client)} may not let ${grantee} read: ${error.message}.`,
      'Nothing was granted. Run this with the role that owns the tables.',
      { cause: error },
    );
  });
}

/** SQL of our tables: those with the owner of the table `migration`. The schema may hold others. Names are quoted. */
const OUR_TABLES = `select c.oid::regclass::text as name from pg_class c, pg_class m
  where m.oid = 'migration'::regclass and c.relkind in ('r', 'p')
    and (c.relnamespace, c.relowner) = (m.relnamespace, m.relowner)`;

export async function unreadableError(client: ClientBase, tables: string): Promise<OperatorError> {
  const role = await roleName(client);
  return new OperatorError(
    `The role ${role} may not read ${tables}.`,
    `Run \`lanescan migrate --grant-read ${role}\` with the role that owns the tables.`,
  );
}

export async function roleName(client: ClientBase): Promise<string> {
  return (await client.query('select current_user as name')).rows[0].name;
}

/** 42501: insufficient privilege; 25006: read-only transaction. */
export function isPermissionError(error: unknown): boolean {
  return ['42501', '25006'].includes(String((error as { code?: unknown }).code));
}

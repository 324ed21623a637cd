/** Empty databases on the embedded PostgreSQL. */
import pg from 'pg';

export function createDatabaseIn(connection: {
  readonly host: string;
  readonly user: string;
}): () => Promise<string> {
  let created = 0;
  return async () => {
    const name = `bench_${++created}`;
    const client = new pg.Client({ ...connection, database: 'postgres' });
    await client.connect();
    try {
      await client.query(`create database ${name}`);
    } finally {
      await client.end();
    }
    const { host, user } = connection;
    return `postgresql:///${name}?host=${encodeURIComponent(host)}&user=${user}`;
  };
}

/** A process that migrates, a few pages at a time: `migration-process.ts DATABASE_URL PAGES_PER_BATCH`. */
import pg from 'pg';
import { migrate } from '../../src/store/schema/migrate.ts';

const [, , database = '', pages = ''] = process.argv;
const client = new pg.Client({ connectionString: database });
await client.connect();
await migrate(client, { pagesPerBatch: Number(pages) });
await client.end();

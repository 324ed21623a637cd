/**
 * PostGraphile 4 on the table as it is: what one gets without writing a server. Settings are those that its manual
 * advises for production (no query log, no GraphiQL, no watching of the schema).
 *
 *     DATABASE_URL=… node postgraphile-server.mjs 8082
 */
import { createServer } from 'node:http';
import pg from 'pg';
import { postgraphile } from 'postgraphile';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10, options: '-c timezone=UTC' });
const handler = postgraphile(pool, 'public', {
  graphiql: false,
  watchPg: false,
  disableQueryLog: true,
  ignoreRBAC: false,
  dynamicJson: true,
  legacyRelations: 'omit',
});

const server = createServer((request, response) => {
  if (request.url === '/ready') {
    response.end('ready');
    return;
  }
  handler(request, response);
});
server.listen(Number(process.argv[2]), '127.0.0.1');

/**
 * A process that is a member of an embedded PostgreSQL and obeys the lines it reads:
 * `leave`, or `query <sql>`. Each answer is one line of JSON; end of input means leave.
 */
import { createInterface } from 'node:readline';
import pg from 'pg';
import { OperatorError } from '../../../src/base/operator-error.ts';
import { openEmbedded } from '../../../src/store/server/embedded.ts';

function answer(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

try {
  const embedded = await openEmbedded({ dataFolder: process.argv[2] ?? '' });
  answer({ isStarter: embedded.isStarter, host: embedded.connection.host });
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === 'leave') break;
    const client = new pg.Client(embedded.connection);
    await client.connect();
    answer((await client.query(line.replace(/^query /, ''))).rows);
    await client.end();
  }
  await embedded.leave();
  answer({ left: true });
} catch (error) {
  if (!(error instanceof OperatorError)) throw error;
  answer({ what: error.message, remedy: error.remedy });
}

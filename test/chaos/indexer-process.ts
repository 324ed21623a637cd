/**
 * A process that indexes until it is killed: `indexer-process.ts DATABASE_URL NETWORKS`, the networks in JSON as
 * lanescan.yaml has them. It begins with the first line of its input, and ends with the end of it.
 */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { readSetting } from '../../src/base/settings.ts';
import { startIndexer } from '../../src/ingest/engine/indexer.ts';
import { connectNetwork, networksSetting } from '../../src/ingest/families.ts';
import { openStore } from '../../src/store/store.ts';
import { chaosTiming } from './timing.ts';

const [, , database = '', networks = '[]'] = process.argv;
const input = createInterface({ input: process.stdin });
input.on('close', () => process.exit());
await once(input, 'line');
const store = await openStore({ place: { url: database } });
startIndexer({
  sources: readSetting(networksSetting, JSON.parse(networks), ['networks']),
  connect: connectNetwork,
  store,
  signal: new AbortController().signal,
  userAgent: 'lanescan-test',
  writeLog: (line) => process.stdout.write(`${line}\n`),
  timing: chaosTiming,
});

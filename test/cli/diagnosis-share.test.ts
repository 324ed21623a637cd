/** Server and indexer are different processes, and stay within the rate of an endpoint together. */
import { expect, test } from 'vitest';
import { readSetting } from '../../src/base/settings.ts';
import { readConfig } from '../../src/cli/config/config.ts';
import { createDestinations, sourcesToIndex } from '../../src/cli/config/destinations.ts';
import { networksSetting } from '../../src/ingest/families.ts';
import { fuji, svmAddress } from '../fixtures.ts';

const places = { rpc: ['http://127.0.0.1:1'], requestsPerSecond: 30 };
const networks = [
  { network: fuji.name, routers: [`0x${'11'.repeat(20)}`], ...places },
  { network: 'solana-devnet', routers: [svmAddress('router')], ...places },
];
const sources = readSetting(networksSetting, networks, ['networks']);

test('what diagnoses take of a rate is left by the indexer', async () => {
  const stopping = new AbortController();
  const destinations = createDestinations({ sources, signal: stopping.signal, writeLog: () => undefined });
  const { callsPerSecond = 0 } = (await destinations.destinationOf(fuji.chainSelector)) ?? {};
  stopping.abort();
  const [evm, svm] = sourcesToIndex(sources, readConfig({}, {}));
  expect(callsPerSecond).toBeGreaterThan(0);
  expect(callsPerSecond + (evm?.requestsPerSecond ?? 0)).toBeCloseTo(30);
  // Executions on Solana are not simulated.
  expect(svm?.requestsPerSecond).toBe(30);
  expect(sourcesToIndex(sources, readConfig({}, { LANESCAN_DIAGNOSIS: 'false' }))).toEqual(sources);
});

/** Profiles do what they say: each answers something else than an archive node, and an archive node everything. */
import { beforeAll, describe, expect, test } from 'vitest';
import { addresses } from '../ccip-accounts.ts';
import { createSolanaWorld, type SolanaWorld } from '../ccip-world.ts';
import { createTraffic } from '../traffic.ts';
import { startSolanaProvider } from './node.ts';
import { archiveNode, type SolanaProfile } from './solana-profile.ts';
import { PROFILE_STEPS, profiles } from './solana-profiles.ts';

const world = createSolanaWorld({ versionOneEvery: 3 });
createTraffic(world, { seed: 'zoo' })(PROFILE_STEPS);
world.settle();

/** What a client sees that asks for everything without distrust. */
async function look(seen: SolanaWorld, profile: SolanaProfile): Promise<string> {
  const provider = await startSolanaProvider(seen.cluster, profile);
  try {
    return await answersOf(provider.url, seen);
  } finally {
    await provider.close();
  }
}

async function answersOf(url: URL, seen: SolanaWorld): Promise<string> {
  const post = async (body: unknown): Promise<string> => {
    try {
      const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
      return `${response.status} ${response.headers.get('Retry-After')} ${await response.text()}`;
    } catch (error) {
      return String((error as Error).cause);
    }
  };
  const call = (method: string, ...params: readonly unknown[]) => ({ jsonrpc: '2.0', id: 1, method, params });
  const { router, offRamp } = seen.programs;
  const answers: string[] = [];
  for (const method of ['getGenesisHash', 'getSlot', 'getFirstAvailableBlock'])
    answers.push(await post(call(method)));
  answers.push(await post(call('getMultipleAccounts', [addresses.config(router)], { encoding: 'base64' })));
  for (const address of [router, offRamp]) {
    let before: string | undefined;
    for (let page = 0; page < 4; page++) {
      const config = { limit: 40, ...(before !== undefined && { before }) };
      const answer = await post(call('getSignaturesForAddress', address, config));
      answers.push(answer);
      before = /.*"signature":"(\w+)"/.exec(answer)?.[1];
    }
  }
  // A signature that no chain has.
  const before = '2'.repeat(87);
  answers.push(await post(call('getSignaturesForAddress', router, { before })));
  const supported = { maxSupportedTransactionVersion: 1 };
  const everything = [...seen.truth.sends, ...seen.truth.executions];
  for (const { signature } of everything.slice(0, 12))
    answers.push(await post(call('getTransaction', signature, supported)));
  answers.push(await post(everything.map(({ signature }) => call('getTransaction', signature, supported))));
  return answers.join('\n');
}

let archived: string;
beforeAll(async () => {
  archived = await look(world, archiveNode);
});

test('an archive node answers the same whenever it is asked', async () => {
  expect(await look(world, archiveNode)).toBe(archived);
});

describe('differs from an archive node', () => {
  const others = profiles.filter((one) => one !== archiveNode).map((one) => [one.name, one] as const);
  test.each(others)('%s', async (_, profile) => {
    expect(await look(world, profile)).not.toBe(archived);
  });
});

// @module-tag slow: indexes two chains for each test, and starts the program
/** Silence is not absence: what the contracts count is compared with what was read, and a difference is loud. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { metricOf, serveStore } from '../api/running-server.ts';
import { lanescan } from '../cli/program.ts';
import { makeCcipWorld } from '../virtual-chain/ccip-chain.ts';
import { archiveNode } from '../virtual-chain/endpoint-profile.ts';
import { profileOf } from '../virtual-chain/endpoint-profiles.ts';
import { writeWorldConfiguration } from '../virtual-chain/indexed-world.ts';
import { type ServedWorld, serveWorld } from '../virtual-chain/served-world.ts';
import { allRecords } from './indexing.ts';

/** Old logs are gone, and nothing says so. */
const pruned = profileOf('pruned-in-silence');

const findingsOf = async ({ findings }: ServedWorld, chain?: ServedWorld['world']['a']) =>
  (await findings(chain)).map(({ kind, detail }) => `${kind}: ${detail}`);

const audit = ({ world, store }: ServedWorld) =>
  lanescan(['audit', '--source', world.a.network.name], { env: { DATABASE_URL: store.url } });

describe('an endpoint that has pruned old logs in silence', () => {
  test('alone is loudly incomplete: index, audit, doctor, the API and the metrics say so', async () => {
    const served = await serveWorld(makeCcipWorld({ blocks: 3_000, messages: 200 }), [pruned]);
    const { store } = served;
    const chains = [[served.world.a, served.a] as const, [served.world.b, served.b] as const];
    const config = writeWorldConfiguration(chains, { pollSeconds: 0.1 });
    const run = (...args: string[]) =>
      lanescan([...args, '--config', config], { env: { DATABASE_URL: store.url } });

    const indexed = await run('index', '--once');
    expect((await allRecords(store)).size).toBeLessThan(400);
    expect(indexed.code, indexed.stderr).toBe(3);
    expect(indexed.stdout).toMatch(
      /geth-testnet: Router 0x\w+ names the on-ramp 0x\w+ for ethereum-testnet-sepolia, but/,
    );
    expect(indexed.stdout).toMatch(
      /geth-testnet: On-ramp 0x\w+ has sent 200 messages .* were not found in its history/,
    );
    expect(indexed.stderr).toMatch(/archive node/);

    const audited = await run('audit');
    expect(audited.code).toBe(1);
    expect(audited.stdout).toMatch(/1…200: \d+ missing: 1…\d+.*the on-ramp counts 200/);
    expect(audited.stderr).toMatch(/^NOT complete/);

    const checked = await run('doctor');
    expect(checked.code).toBe(1);
    expect(checked.stdout).toMatch(/✗ geth-testnet: On-ramp 0x\w+ has sent 200 messages/);

    const server = await serveStore(store);
    onTestFinished(() => server.close());
    const { text } = await server.ask('/v2/networks?indexed=true');
    const { data } = JSON.parse(text) as { data: { name: string; indexing: object }[] };
    expect(data.find(({ name }) => name === 'geth-testnet')?.indexing).toMatchObject({
      findings: expect.arrayContaining([
        { kind: 'messages-missing', text: expect.stringMatching(/on-ramp/), isLoss: true, count: 1 },
        { kind: 'registrations-missing', text: expect.any(String), isLoss: true, count: 2 },
      ]),
    });
    expect(text).not.toContain('127.0.0.1');
    expect(
      await metricOf(server, 'lanescan_network_findings{network="geth-testnet",kind="messages-missing"}'),
    ).toBe('1');

    // Nothing is read again until the next try is due: the one endpoint there is has been asked.
    const [provider] = served.a;
    provider?.resetCounts();
    expect((await run('index', '--once')).code).toBe(3);
    expect(provider?.callsByMethod.get('eth_getLogs') ?? 0).toBeLessThan(10);
  });

  test('beside a good one comes to everything, whichever is asked first', async () => {
    for (const profiles of [
      [pruned, archiveNode],
      [archiveNode, pruned],
    ]) {
      const served = await serveWorld(makeCcipWorld({ blocks: 2_000, messages: 60, ramps: 2 }), profiles);
      await served.index();
      expect(await served.differences()).toEqual([]);
      // Nobody can confirm what only the archive node has.
      expect(await findingsOf(served)).toEqual([
        expect.stringMatching(/^events-unconfirmed: \S+ alone has shown the events of \d+ blocks/),
      ]);
    }
  });

  test('with a configured start lacks nothing that is expected', async () => {
    const served = await serveWorld(makeCcipWorld({ blocks: 1_000, messages: 60 }));
    await served.index({ start: { block: 500 } });
    expect(await findingsOf(served)).toEqual([]);
    const { code, stdout, stderr } = await audit(served);
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(
      /\d+…60: none missing \(the on-ramp counts 60, unknown before \d+, where indexing starts/,
    );
  });

  test('on the destination lacks commits and executions, and says so', async () => {
    const served = await serveWorld(makeCcipWorld({ blocks: 1_000, messages: 60 }), [archiveNode], [pruned]);
    await served.index();
    expect(await findingsOf(served, served.world.b)).toContainEqual(
      expect.stringMatching(/^commits-missing: 60 messages from geth-testnet are committed on 0x\w+/),
    );
    const { stdout } = await audit(served);
    expect(stdout).toMatch(/1…60: none missing; commits \d+ missing: 1…/);
  });
});

test('an on-ramp that only its commits elsewhere name is a contradiction', async () => {
  // The first on-ramp is retired: the router's views do not name it any more.
  const served = await serveWorld(makeCcipWorld({ blocks: 2_000, messages: 60, ramps: 2 }), [pruned]);
  await served.index();
  expect(await findingsOf(served)).toContainEqual(
    expect.stringMatching(/^onramp-unknown: ethereum-testnet-sepolia has committed messages up to 30/),
  );
});

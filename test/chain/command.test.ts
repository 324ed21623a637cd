// @module-tag slow: starts chain nodes and the program many times; indexer.test.ts is the quick pass
/** `lanescan index` as a process: what it says, how it ends, and what is there when it was killed. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openStore, type Store } from '../../src/store/store.ts';
import {
  buildProgram,
  freshFolder,
  hasTerminal,
  lanescan,
  onTerminal,
  type Running,
  runProgram,
  start,
} from '../cli/program.ts';
import { createTestDatabase, type TestDatabase } from '../database.ts';
import { type ConfigurationOptions, writeConfiguration } from '../lab/config.ts';
import { type Lab, type SentMessage, startLab } from '../lab/lab.ts';
import { allRecords, FINALITY } from './indexing.ts';
import { isHistoryCall, isInRange, type NodeProxy, rejecting, startNodeProxy } from './node-proxy.ts';
import { eventually } from './proxied-lab.ts';

let lab: Lab;
/** In front of the first network. */
let proxy: NodeProxy;
let messages: readonly SentMessage[];
/** Every message as a run that nothing disturbed has it. */
let undisturbed: ReadonlyMap<string, string>;
const databases: TestDatabase[] = [];
const running: Running[] = [];

beforeAll(async () => {
  await buildProgram();
  lab = await startLab({ versions: ['1.6', '2.0'] });
  messages = await makeTraffic();
  const database = await emptyDatabase();
  const { code, stderr } = await index(database, ['--once']);
  expect(code, stderr).toBe(0);
  undisturbed = await recordsIn(database);
}, 240_000);
beforeEach(async () => {
  proxy = await startNodeProxy(lab.a.url);
});
afterEach(async () => {
  for (const { child, outcome } of running.splice(0)) {
    child.kill('SIGKILL');
    await outcome;
  }
  for (const database of databases.splice(0)) await database.drop();
  await proxy.close();
});
afterAll(() => lab?.stop());

async function makeTraffic(): Promise<readonly SentMessage[]> {
  const sent: SentMessage[] = [];
  for (const lane of lab.lanes) {
    const some = await lane.send({ count: 3 });
    if (lane.version === '1.6') await lane.commit(some);
    const [failing, passing] = some;
    if (failing) await lane.execute(failing, { fail: true });
    if (passing) await lane.execute(passing);
    sent.push(...some);
  }
  for (const network of lab.networks) await network.mine(FINALITY + 1);
  return sent;
}

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  databases.push(database);
  return database;
}

async function reading<T>({ url }: TestDatabase, read: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore({ place: { url } });
  return read(store).finally(() => store.close());
}

const recordsIn = (database: TestDatabase) => reading(database, allRecords);
const untilKnown = (database: TestDatabase, { messageId }: SentMessage) =>
  eventually(async () => expect((await recordsIn(database)).has(messageId)).toBe(true));

function configuration(options: ConfigurationOptions = {}): string {
  return writeConfiguration(lab, freshFolder(), options);
}

/** The first network through the proxy, in pieces that are short enough to stop between them. */
const throughProxy = (): ConfigurationOptions => ({
  rpc: { a: [proxy.url.href], b: [lab.b.url] },
  extra: () => ({ maxRange: 10 }),
});

const index = (database: TestDatabase, args: readonly string[], options?: ConfigurationOptions) =>
  runProgram(['index', '--config', configuration(options), ...args], { env: { DATABASE_URL: database.url } });

function startIndexing(database: TestDatabase, args: readonly string[] = [], options?: ConfigurationOptions) {
  const started = start(['index', '--config', configuration(options), ...args], {
    env: { DATABASE_URL: database.url },
  });
  running.push(started);
  return started;
}

describe('--once', () => {
  test('fills an embedded store, says so, and finds nothing new the next time', async () => {
    const folder = freshFolder();
    const places = ['--config', configuration(), '--data', path.join(folder, 'data')];
    const first = await runProgram(['index', '--once', ...places]);
    expect(first).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        new RegExp(`^2 networks: ${messages.length} new messages, \\d+ updates\\n$`),
      ),
    });
    for (const { name } of lab.networks) {
      expect(first.stderr).toMatch(
        new RegExp(`"network":"${name}","msg":"100\\.0% · \\d+ new messages? · block \\d+, `),
      );
    }
    expect(first.stderr).not.toContain('\u001b');
    const found = await runProgram(['search', '--limit', '1000', '--json', ...places]);
    const ids = found.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).messageId);
    expect(ids.sort()).toEqual(messages.map(({ messageId }) => messageId).sort());

    const second = await runProgram(['index', '--once', ...places]);
    expect(second).toMatchObject({ code: 0, stdout: '2 networks: 0 new messages, 0 updates\n' });
  });

  test('ends on a chain that grows all the time', async () => {
    const database = await emptyDatabase();
    const stop = new AbortController();
    const growing = (async () => {
      while (!stop.signal.aborted) {
        await lab.b.mine();
        await delay(50);
      }
    })();
    try {
      expect((await index(database, ['--once'], { pollSeconds: 0.1 })).code).toBe(0);
    } finally {
      stop.abort();
      await growing;
    }
    expect([...(await recordsIn(database)).keys()].sort()).toEqual([...undisturbed.keys()].sort());
  });

  test('stops at SIGINT with status 130, and says how far it came', async () => {
    const database = await emptyDatabase();
    let isHeld = false;
    proxy.interfere = (call, truth) => {
      if (!isHistoryCall(call) || proxy.calls.filter(isHistoryCall).length <= 3) return truth;
      isHeld = true;
      // The rest of history waits for ever.
      return new Promise(() => undefined);
    };
    const indexing = startIndexing(database, ['--once'], throughProxy());
    await eventually(() => expect(isHeld).toBe(true));
    indexing.child.kill('SIGINT');
    const { code, stdout, stderr } = await indexing.outcome;
    expect(code).toBe(130);
    expect(stdout).toMatch(/^2 networks: \d+ new messages?, \d+ updates?\n$/);
    expect(stderr).toMatch(new RegExp(`"network":"${lab.a.name}","msg":".*\\d+ blocks? to go`));
    expect(stderr).not.toMatch(/fault|abort/i);
  });

  test('ends with status 3 where blocks could not be read, and says so', async () => {
    const database = await emptyDatabase();
    const [{ blockNumber = 0 } = {}] = messages.filter(({ from }) => from === 'a');
    proxy.interfere = rejecting(
      (call) => isInRange(call, blockNumber) || call.method === 'eth_getBlockReceipts',
      -32000,
      'leveldb: corruption on data-block',
    );
    const { code, stdout, stderr } = await index(database, ['--once'], throughProxy());
    expect(code, stderr).toBe(3);
    expect(stdout).toMatch(/^2 networks: .*, \d+ ranges? of blocks could not be read yet\n$/);
    expect(stderr).toMatch(
      /"level":40,.*"network":"geth-testnet","msg":"Blocks \d+ to \d+ cannot be read yet: .*leveldb: corruption/,
    );
  });

  test('takes up only the networks that it is told to', async () => {
    const database = await emptyDatabase();
    const twice = ['--network', lab.b.name, String(lab.b.chainId)];
    const { code, stdout, stderr } = await index(database, ['--once', ...twice]);
    const sent = messages.filter(({ from }) => from === 'b').length;
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(new RegExp(`^1 network: ${sent} new messages, `)),
    });
    expect(stderr).not.toContain(lab.a.name);
  });
});

test('without --once it follows the chains, and stops at SIGINT with status 0', async () => {
  const database = await emptyDatabase();
  const indexing = startIndexing(database);
  await untilKnown(database, await lab.lane('1.6', 'a').sendOne());
  indexing.child.kill('SIGINT');
  expect(await indexing.outcome).toMatchObject({ code: 0, stdout: expect.stringContaining('2 networks: ') });
});

describe('rejected is', () => {
  test('a network that is not configured, with those that are', async () => {
    const args = ['--config', configuration(), '--network', 'atlantis'];
    const { code, stdout, stderr } = await lanescan(['index', ...args]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toBe(
      'lanescan: atlantis is not among the configured networks. They are geth-testnet, anvil-devnet.\n',
    );
  });

  test.each(['index', 'serve'])('%s without networks, with where to name them', async (verb) => {
    const config = path.join(freshFolder(), 'lanescan.yaml');
    writeFileSync(config, 'logLevel: info\n');
    const flags = verb === 'serve' ? ['--index', '--port', '0'] : [];
    const { code, stderr } = await lanescan([verb, ...flags, '--config', config]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^lanescan: No networks are configured\. .*`networks` in lanescan\.yaml/);
  });

  test('a store with simulated data', async () => {
    const database = await createTestDatabase({ empty: true });
    databases.push(database);
    await (await openStore({ place: { url: database.url }, content: 'simulated' })).close();
    const { code, stderr } = await lanescan(['index', '--config', configuration()], {
      env: { DATABASE_URL: database.url },
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(/simulated/i);
    expect(stderr.split('\n')).toHaveLength(2);
  });
});

test('when an indexer is killed with -9, another one that was waiting takes over within seconds', async () => {
  const database = await emptyDatabase();
  const first = startIndexing(database);
  await first.untilSaid(/./).catch(() => undefined);
  await eventually(async () => expect((await recordsIn(database)).size).toBeGreaterThan(0));
  const second = startIndexing(database);
  await second.untilSaid(/"network":"geth-testnet","msg":"another indexer works on it; waiting"/);
  await second.untilSaid(/"network":"anvil-devnet","msg":"another indexer works on it; waiting"/);
  expect(second.said().stderr).not.toContain('taken over');

  first.child.kill('SIGKILL');
  const killedAt = performance.now();
  await second.untilSaid(/"network":"geth-testnet","msg":"taken over"/);
  await second.untilSaid(/"network":"anvil-devnet","msg":"taken over"/);
  const seconds = (performance.now() - killedAt) / 1000;
  process.stdout.write(`Taken over ${seconds.toFixed(1)} s after a kill -9.\n`);
  expect(seconds).toBeLessThan(30);
  await untilKnown(database, await lab.lane('1.6', 'b').sendOne());
});

test('`serve --index` serves what it indexes, and stops cleanly', async () => {
  const database = await emptyDatabase();
  const server = start(['serve', '--index', '--port', '0', '--config', configuration()], {
    env: { DATABASE_URL: database.url },
  });
  running.push(server);
  const [, url = ''] = await server.untilSaid(/listens on (http:\/\/127\.0\.0\.1:\d+)/);
  const message = await lab.lane('1.6', 'a').sendOne();
  await eventually(async () => {
    const answer = await fetch(`${url}/v2/messages/${message.messageId}`);
    expect(await answer.json()).toMatchObject({ messageId: message.messageId, status: 'SENT' });
  });
  server.child.kill('SIGTERM');
  const { code, stderr } = await server.outcome;
  expect(code).toBe(0);
  const levels = stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).level);
  // Nothing that a quiet run has to warn of.
  expect(new Set(levels)).toEqual(new Set([30]));
});

test('`doctor` has nothing to say against the lab', async () => {
  const database = await emptyDatabase();
  const { code, stdout } = await lanescan(['doctor', '--port', '0', '--config', configuration()], {
    env: { DATABASE_URL: database.url },
  });
  const marks = stdout.split('\n').filter((line) => /^[✓!✗]/.test(line));
  expect(marks.filter((line) => lab.networks.some(({ name }) => line.includes(name)))).toHaveLength(6);
  expect(marks.filter((line) => !line.startsWith('✓'))).toEqual([]);
  expect(code).toBe(0);
});

describe.runIf(hasTerminal)('on a terminal', () => {
  /** What is to be seen at the end: a line goes when the cursor is taken up over it. */
  function screenOf(lines: readonly string[]): {
    readonly screen: readonly string[];
    readonly redrawn: number;
  } {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is how a terminal is told
    const [first = '', ...rest] = lines.join('\n').split(/\u001b\[(\d+)A\u001b\[J/);
    const screen = first.split('\n');
    for (let place = 0; place < rest.length; place += 2) {
      screen.splice(-1 - Number(rest[place]), Number(rest[place]) + 1);
      screen.push(...(rest[place + 1] ?? '').split('\n'));
    }
    return { screen, redrawn: rest.length / 2 };
  }

  test.each([80, 140])(
    'of %i columns each network has a bar that is renewed in its place',
    async (columns) => {
      const database = await emptyDatabase();
      const { code, lines } = onTerminal(columns, `lanescan index --once --config ${configuration()}`, {
        env: { DATABASE_URL: database.url },
      });
      expect(code).toBe(0);
      const { screen, redrawn } = screenOf(lines);
      expect(redrawn).toBeGreaterThan(1);
      const bar = (name: string) =>
        new RegExp(`^${name}  █{${columns < 110 ? 10 : 20}} 100\\.0%  \\d+ new messages · block \\d+, `);
      expect(screen).toEqual([
        expect.stringMatching(bar('geth-testnet')),
        expect.stringMatching(bar('anvil-devnet')),
        expect.stringMatching(/^2 networks: \d+ new messages, \d+ updates$/),
      ]);
      for (const line of lines) expect(line.length).toBeLessThan(columns + 20);
    },
  );
});

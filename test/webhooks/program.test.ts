/** `lanescan webhooks`, and the guide, whose commands work as they stand. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { buildProgram, freshFolder, lanescan } from '../cli/program.ts';
import {
  eventually,
  newMessage,
  openStoreForTest,
  type Receiver,
  runDispatcher,
  SECRET,
  startReceiver,
  subscriptionTo,
  untilSettled,
} from './receiver.ts';

let store: Store & { readonly url: string };
let receiver: Receiver;
let config: string;

beforeEach(async () => {
  store = await openStoreForTest();
  receiver = await startReceiver();
  config = path.join(freshFolder(), 'lanescan.yaml');
  const url = `http://127.0.0.1:${receiver.port}/secret-path`;
  writeFileSync(
    config,
    `webhooks: [{ name: ops, url: "${url}", secret: "\${SECRET}", allowPrivate: true }]\n`,
  );
});

const webhooks = (...args: readonly string[]) =>
  lanescan(['webhooks', ...args, '--config', config], { env: { DATABASE_URL: store.url, SECRET } });

describe('lanescan webhooks list', () => {
  test('shows position, lag, what waits and what is parked, the latest error, and no secret', async () => {
    expect((await webhooks('list')).stdout).toMatch(/^ops .* – +0 +0 +0 +0 +not served$/m);
    receiver.reply = ({ event }) => ({ status: event.data.version === 1 ? 410 : 500, body: '\u001b[31mno' });
    await runDispatcher(store, [subscriptionTo(receiver.url)], { timings: { retryForMs: 60_000 } });
    await store.apply([newMessage(1), newMessage(2)]);
    // Which of the two is answered first is not certain: the one that is parked has had its last word.
    await eventually(async () => (await store.webhooks.backlog())[0]).toMatchObject({
      parked: 1,
      lastError: expect.stringContaining('500'),
    });
    const { code, stdout } = await webhooks('list');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^NAME +TARGET +POSITION +LAG +PENDING +PARKED +DELIVERED$/m);
    expect(stdout).toMatch(/^ops +http:\/\/127.0.0.1:\d+\/… +2 +0 +1 +1 +0 +served$/m);
    expect(stdout).toMatch(/^ops: \d s ago: HTTP 500: \\u\{1b\}\[31mno$/m);
    expect(stdout).not.toMatch(/secret-path|whsec/);
    const { stdout: json } = await webhooks('list', '--json');
    expect(JSON.parse(json)).toMatchObject({
      name: 'ops',
      position: '2',
      pending: 1,
      parked: 1,
      isServed: true,
    });
  });

  test('says so where there are none, and shows those that only the store remembers', async () => {
    writeFileSync(config, 'port: 1\n');
    expect(await webhooks('list')).toMatchObject({ code: 0, stdout: '', stderr: /.*/ });
    await store.webhooks.rewind('old', '0');
    expect((await webhooks('list')).stdout).toMatch(/^old +\(not in the configuration\)/m);
  });
});

describe('lanescan webhooks test', () => {
  test('sends a signed event and shows the answer', async () => {
    const { code, stdout } = await webhooks('test', 'ops');
    expect(stdout).toMatch(/^ops accepted the test event ops_test_\d+: HTTP 200 in \d+ ms\.\n$/);
    expect(code).toBe(0);
    expect(receiver.receipts[0]?.event).toMatchObject({
      type: 'lanescan.test',
      data: { subscription: 'ops' },
    });
  });

  test('fails where the receiver does', async () => {
    receiver.reply = () => ({ status: 401, body: 'bad signature' });
    const { code, stderr } = await webhooks('test', 'ops');
    expect(stderr).toMatch(
      /ops did not accept the test event ops_test_\d+: HTTP 401: bad signature\. It was sent to/,
    );
    expect(stderr).not.toMatch(/secret-path/);
    expect(code).toBe(1);
  });
});

describe('lanescan webhooks replay', () => {
  test('--parked makes parked events pending again', async () => {
    receiver.reply = () => ({ status: 410 });
    await runDispatcher(store, [subscriptionTo(receiver.url)]);
    await store.apply([newMessage(1)]);
    await eventually(async () => (await store.webhooks.backlog())[0]?.parked).toBe(1);
    receiver.reply = () => ({ status: 200 });
    expect(await webhooks('replay', 'ops', '--parked')).toMatchObject({
      code: 0,
      stdout: '1 parked event of ops will be delivered again.\n',
    });
    await untilSettled(store);
    expect(receiver.accepted).toHaveLength(1);
  });

  test('--after sends what lies behind a position, also to a subscription that never was served', async () => {
    await store.apply([1, 2, 3].map((number) => newMessage(number)));
    const { stdout } = await webhooks('replay', 'ops', '--after', '1');
    expect(stdout).toBe('ops goes back to position 1: 2 changes will be processed again.\n');
    await runDispatcher(store, [subscriptionTo(receiver.url)]);
    await untilSettled(store);
    expect(receiver.accepted.map(({ id }) => id).sort()).toEqual(['ops_2', 'ops_3']);
  });

  test('wrong usage and unknown names are rejected in words that help', async () => {
    for (const [args, expected, words] of [
      [['replay', 'ops'], 2, /either --parked or --after/],
      [['replay', 'ops', '--parked', '--after', '1'], 2, /either --parked or --after/],
      [['replay', 'ops', '--after', 'x'], 2, /--after is "x"\. It takes a position/],
      [['replay', 'ops', '--after', '7'], 2, /--after is 7, but the history ends at 0/],
      [['replay', 'opps', '--parked'], 1, /No webhook is named "opps"\. Did you mean ops\?/],
      [['test', 'nothing'], 1, /No webhook is named "nothing"\. There are ops\./],
      [['tset', 'ops'], 2, /unknown command 'tset'/],
      [
        ['replay', '--parked'],
        2,
        /missing required argument 'name'[\s\S]*Try: lanescan webhooks replay --help/,
      ],
    ] as const) {
      const { code, stderr } = await webhooks(...args);
      expect(stderr).toMatch(words);
      expect({ args, code }).toEqual({ args, code: expected });
    }
  });

  test('every verb has help with examples', async () => {
    for (const verb of [[], ['list'], ['test'], ['replay']]) {
      const { code, stdout } = await lanescan(['webhooks', ...verb, '--help']);
      expect(stdout).toMatch(/Examples:\n {2}\$ lanescan webhooks/);
      expect(code).toBe(0);
    }
  });
});

describe('the program', () => {
  test('serve rejects a wrong configuration before anything else, and search does not need the secrets', async () => {
    const env = { DATABASE_URL: store.url };
    const { code, stderr } = await lanescan(['serve', '--port', '0', '--config', config], { env });
    expect(stderr).toMatch(/webhooks\[0\]\.secret in .* needs the variable SECRET, which is not set/);
    expect(code).toBe(1);
    expect((await lanescan(['search', '--config', config], { env })).code).toBe(0);
  });

  test('every command of docs/api/webhooks.md works as it stands', { tags: 'slow' }, async () => {
    await buildProgram();
    await store.apply([newMessage(1, { status: 'FAILED' }), newMessage(2)]);
    const guide = readFileSync('docs/api/webhooks.md', 'utf8').replaceAll('9000', String(receiver.port));
    await receiver.close();
    const blocks = (language: string) =>
      [...guide.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
        ([, text = '']) => text,
      );
    const cwd = freshFolder();
    mkdirSync(path.join(cwd, 'node_modules'));
    symlinkSync(
      path.resolve('node_modules/standardwebhooks'),
      path.join(cwd, 'node_modules/standardwebhooks'),
    );
    writeFileSync(path.join(cwd, 'receiver.mjs'), blocks('js').join('\n'));
    writeFileSync(path.join(cwd, 'lanescan.yaml'), blocks('yaml').join('\n'));
    const steps = blocks('sh');
    expect(steps).toHaveLength(5);
    // A program rather than a function of the shell: what is killed at the end is then the server itself.
    const program = path.join(cwd, 'lanescan');
    symlinkSync(path.resolve('bin/lanescan'), program);
    const untilDelivered = `until lanescan webhooks list --json | grep '"delivered":1'; do sleep 0.5; done`;
    const script = ['set -e', "trap 'kill $(jobs -p); wait' EXIT", ...steps, untilDelivered].join('\n');
    const { status, stdout, stderr } = spawnSync('bash', ['-c', script], {
      cwd,
      env: { PATH: `${cwd}:${process.env.PATH}`, HOME: process.env.HOME, DATABASE_URL: store.url, PORT: '0' },
      encoding: 'utf8',
      timeout: 120_000,
    });
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect(stdout).toMatch(/^ops-alerts accepted the test event/m);
    expect(stdout).toMatch(/^ops-alerts +http:\/\/127.0.0.1:\d+\/… /m);
    expect(stdout).toMatch(/^0 parked events of ops-alerts will be delivered again\.$/m);
    // Only the failed one matches the filters.
    expect(stdout.match(/^ops-alerts_\d+ .*$/gm)).toEqual(['ops-alerts_1 message.created FAILED']);
  });
});

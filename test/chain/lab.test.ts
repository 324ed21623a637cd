// @module-tag release: tests the lab itself, which every test that uses it does in part
/** The lab itself: its driver and its nodes. What its contracts do, all tests that use it show. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { Hex } from 'viem';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { drive } from '../lab/driver.ts';
import { FIRST_FREE_ACCOUNT, type Lab, type Lane, startLab } from '../lab/lab.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.stop());

test('the driver goes on whatever others do to its messages, and takes theirs along', async () => {
  const heads = new Map(
    await Promise.all(
      lab.lanes.map(async (lane) => {
        const head = await lab.network(lane.from).rpc<Hex>('eth_blockNumber');
        return [lane, Number(head) + 1] as const;
      }),
    ),
  );
  let isDriven = true;
  const executed = new Set<string>();
  /** Executes by hand what it finds, over and over, and sends messages of its own. */
  const meddle = async (lane: Lane) => {
    const from = lab.network(lane.from).accounts[FIRST_FREE_ACCOUNT];
    await lane.sendOne({ ...(from && { from }), data: '0xfeed' });
    while (isDriven) {
      for (const message of await lane.sentSince(heads.get(lane) ?? 0)) {
        // The contracts reject here what they would reject from a user.
        const done = await lane.executeByHand(message).catch(() => undefined);
        if (done?.state === 'success') executed.add(message.messageId);
        if (!isDriven) return;
      }
    }
  };
  const meddling = Promise.allSettled(lab.lanes.map(meddle));
  const tallies = await drive(lab, {
    seed: 'meddled with',
    messagesPerSecond: Number.POSITIVE_INFINITY,
    rounds: 12,
  }).finally(() => {
    isDriven = false;
  });
  await meddling;
  expect(tallies.size).toBe(8);
  expect(executed.size).toBeGreaterThan(0);
  for (const [lane, { sent, commits }] of tallies) {
    const messages = await lane.sentSince(heads.get(lane) ?? 0);
    // One more than the driver sent.
    expect(messages, lane.name).toHaveLength(sent + 1);
    if (lane.version !== '2.0') expect(commits, lane.name).toBeGreaterThan(0);
  }
});

test('a node ends with the process that started it, however that ends', async () => {
  const nodes = path.resolve(import.meta.dirname, '../lab/nodes.ts');
  const program = `
    import { startNode } from ${JSON.stringify(nodes)};
    const { pid } = await startNode({ chainId: 1337 });
    process.stdout.write(String(pid));
    setInterval(() => undefined, 1000);`;
  const args = ['--import', 'tsx', '--input-type=module', '--eval', program];
  const starter = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void starter.kill('SIGKILL'));
  const [said] = await once(starter.stdout.setEncoding('utf8'), 'data');
  const pid = Number(said);
  expect(isRunning(pid)).toBe(true);
  starter.kill('SIGKILL');
  await expect.poll(() => isRunning(pid), { timeout: 120_000 }).toBe(false);
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

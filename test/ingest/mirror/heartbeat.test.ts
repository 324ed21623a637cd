/** A mirror's heartbeat: a process that was killed is missed, one that ended with --once is not. */
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { type RunningServer, serveStore, startServerForTest } from '../../api/running-server.ts';
import { buildProgram, lanescan, start } from '../../cli/program.ts';
import { openTestStore } from '../../database.ts';
import { makeMessage } from '../../fixtures.ts';
import { queryOnce } from '../../postgres.ts';

// Longer than any wait in it, however busy the machine is.
vi.setConfig({ testTimeout: 300_000 });

beforeAll(() => buildProgram());

async function openCopy() {
  const store = await openTestStore();
  const server = await serveStore(store);
  onTestFinished(() => server.close());
  return { store, server, env: { DATABASE_URL: store.url } };
}

const stateOf = async (server: RunningServer) => ({
  ready: (await server.ask('/readyz')).json<{ checks: Record<string, string> }>().checks.mirror,
  mirrors: (await server.ask('/v2/networks')).json<{ mirrors: readonly { health: string }[] }>().mirrors,
});

/** A busy server calls `unknown` what it cannot read in time. */
const eventually = (server: RunningServer) =>
  expect.poll(() => stateOf(server), { timeout: 120_000, interval: 200 });

test('a mirror that follows is alive, and missed when it is killed', { tags: 'slow' }, async () => {
  const source = await startServerForTest([makeMessage({ number: 1 })]);
  const { store, server, env } = await openCopy();
  const mirror = start(['mirror', source.url, '--poll', '0.1', '--rate', '100'], { env });
  onTestFinished(() => void mirror.child.kill('SIGKILL'));
  await vi.waitFor(
    async () =>
      expect(await stateOf(server)).toEqual({
        ready: 'ok',
        mirrors: [{ health: 'ok', lastSeenAt: expect.any(String), currentAt: expect.any(String) }],
      }),
    { timeout: 120_000, interval: 100 },
  );

  mirror.child.kill('SIGKILL');
  const { stderr } = await mirror.outcome;
  for (const line of stderr.trimEnd().split('\n').filter(Boolean))
    expect(JSON.parse(line)).toMatchObject({ component: expect.stringMatching(/^(mirror|store)$/) });
  await queryOnce(store.url, `update mirror set seen_at = seen_at - interval '10 min'`);

  await eventually(server).toMatchObject({ ready: 'stopped', mirrors: [{ health: 'stopped' }] });
  const doctor = await lanescan(['doctor', '--port', '0'], { env });
  expect(doctor.stdout).toContain(`! The mirror of ${source.url} stopped 10 min ago`);
});

test('a source that is away leaves a mirror alive, and behind', { tags: 'slow' }, async () => {
  const { server, env } = await openCopy();
  const mirror = start(['mirror', 'http://127.0.0.1:9', '--poll', '0.1'], { env });
  onTestFinished(() => void mirror.child.kill('SIGKILL'));
  await vi.waitFor(async () => expect((await stateOf(server)).ready).toBe('behind'), {
    timeout: 120_000,
    interval: 100,
  });
});

test('one that ended with --once is not missed', async () => {
  const source = await startServerForTest([makeMessage({ number: 1 })]);
  const { server, env } = await openCopy();
  expect(await lanescan(['mirror', source.url, '--once', '--rate', '100'], { env })).toMatchObject({
    code: 0,
  });
  await eventually(server).toEqual({ ready: 'not configured', mirrors: [] });
});

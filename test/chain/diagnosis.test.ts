// @module-tag slow: starts chain nodes with the contracts of every version
/** Diagnoses on real contracts: they say before what then happens, and asking for them has bounds. */
import { beforeAll, describe, expect, test } from 'vitest';
import { expectError, metricOf } from '../api/running-server.ts';
import { lanescan } from '../cli/program.ts';
import { freshFolder } from '../fresh-folder.ts';
import { writeConfiguration } from '../lab/config.ts';
import { PERMISSIONLESS_AFTER_SECONDS, type SentMessage, versions } from '../lab/lab.ts';
import { createLabExecution } from './lab-execution.ts';
import { eventually } from './proxied-lab.ts';
import { encode } from './reverting-contracts.ts';

const service = createLabExecution();
const { ask, diagnoseAnew, diagnosisOf, holdCalls, index, send, serve, statusOf, transactionOf } = service;

describe.each(versions)('the diagnosis of version %s', (version) => {
  test('says before what then happens', async () => {
    const lane = service.lab.lane(version, 'a');
    await lane.replaceRamps();
    const pausing = await lane.sendOne({ data: '0x01', tokens: [{ amount: 7n }] });
    const poor = await lane.sendOne({ data: '0x02', gasLimit: 2_000n });
    await lane.prepare([pausing, poor]);
    await lane.refuseWith(pausing, encode('EnforcedPause'));
    await lane.execute(pausing, { fail: true });
    await lane.execute(poor);
    await index();

    expect(await diagnosisOf(pausing)).toMatchObject({
      outcome: 'fails',
      text: 'The receiver says: the called contract is paused.',
      gasLimit: null,
      gas: null,
      reason: { code: 'EnforcedPause', wrappers: [{ name: 'ReceiverError' }] },
      network: service.lab.b.name,
    });
    // The message of a contract is whole here, while the event of 2.0 has cut it off.
    await lane.refuseWith(pausing, encode('Error', ['closed on Sundays']));
    expect((await diagnoseAnew(pausing)).text).toContain('“closed on Sundays”');
    expect((await transactionOf(pausing)).gasNote).toContain('closed on Sundays');

    const { outcome, gasLimit } = await diagnosisOf(poor);
    expect({ outcome, gasLimit }).toEqual({
      outcome: 'succeeds',
      gasLimit: expect.stringMatching(/^[1-9]0000$/),
    });
    const raised = await transactionOf(poor, `?gasLimit=${gasLimit}`);
    expect(raised.transaction.gas).not.toBeNull();
    await send(raised);
    expect(await statusOf(poor)).toBe('SUCCESS');
    expect((await diagnosisOf(poor)).outcome).toBe('executed');

    await lane.refuse([pausing], false);
    expect(await diagnoseAnew(pausing)).toMatchObject({
      outcome: 'succeeds',
      gasLimit: null,
      gas: expect.any(String),
      reason: null,
    });
    // By hand, so that the index does not know yet: the chain does.
    await lane.executeByHand(pausing);
    expect((await diagnoseAnew(pausing)).outcome).toBe('executed');
    expect(await statusOf(pausing)).toBe('SUCCESS');
  });
});

test.each(['1.5', '1.6'] as const)(
  'a diagnosis of %s names the time when anybody may execute',
  async (version) => {
    const lane = service.lab.lane(version, 'b');
    await lane.replaceRamps();
    const [fine, refused] = [await lane.sendOne({ data: '0x01' }), await lane.sendOne({ data: '0x02' })];
    await index();
    expect(await diagnosisOf(fine)).toMatchObject({
      outcome: 'not-yet',
      block: null,
      text: expect.stringContaining('not committed'),
    });
    const { blockNumber } = await lane.commit([fine, refused]);
    if (version === '1.5') await lane.bless([fine]);
    await lane.refuse([refused]);
    await index();
    const { timestamp } = await service.lab.a.block(blockNumber);
    const opensAt = new Date((Number(timestamp) + PERMISSIONLESS_AFTER_SECONDS + 1) * 1000).toISOString();
    expect(await diagnosisOf(fine)).toMatchObject({ outcome: 'not-yet', opensAt, reason: null });
    expect(await diagnosisOf(refused)).toMatchObject({
      outcome: 'not-yet',
      opensAt,
      reason: { code: 'unknown-error' },
    });

    await service.lab.travel(PERMISSIONLESS_AFTER_SECONDS + 10);
    await index();
    // A first attempt succeeds as a transaction, whatever becomes of the message: the diagnosis tells them apart.
    expect(await diagnoseAnew(refused)).toMatchObject({
      outcome: 'fails',
      reason: { code: 'unknown-error' },
    });
    expect(await diagnoseAnew(fine)).toMatchObject({ outcome: 'succeeds', gas: expect.any(String) });
    const served = await transactionOf(fine);
    expect(served.transaction.gas).not.toBeNull();
    await send(served, service.lab.a);
    expect(await statusOf(fine)).toBe('SUCCESS');
  },
);

describe('the bounds of a diagnosis', () => {
  let stuck: SentMessage;
  beforeAll(async () => {
    const lane = service.lab.lane('1.6', 'a');
    await lane.replaceRamps();
    stuck = await lane.sendOne({ data: '0x0102', gasLimit: 2_000n });
    await lane.commit([stuck]);
    await lane.execute(stuck);
    await index();
  });

  test('many who ask at once share one, and only the off-ramp is called', async () => {
    const { proxy } = service;
    const busy = await serve();
    proxy.calls.length = 0;
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask('diagnosis', stuck, busy)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    const simulated = proxy.calls.filter(
      ({ method }) => method === 'eth_call' || method === 'eth_estimateGas',
    );
    expect(simulated.length).toBeLessThanOrEqual(20);
    const targets = simulated.map(({ params }) => (params[0] as { to: string }).to);
    expect(new Set(targets)).toEqual(new Set([stuck.ramps.offRamp.address.toLowerCase()]));
    const others = new Set(proxy.calls.map(({ method }) => method));
    for (const method of ['eth_call', 'eth_estimateGas', 'eth_getBlockByNumber', 'eth_chainId'])
      others.delete(method);
    expect([...others]).toEqual([]);
  });

  test('what no gas limit changes is asked once for several of them', async () => {
    const { proxy } = service;
    const busy = await serve();
    proxy.calls.length = 0;
    const limits = Array.from({ length: 8 }, (_, place) => 100_000 + place);
    const all = limits.map((gasLimit) => transactionOf(stuck, `?gasLimit=${gasLimit}`, busy));
    for (const { transaction } of await Promise.all(all)) expect(transaction.gas).not.toBeNull();
    const asked = proxy.calls.flatMap(({ method, params }) =>
      method === 'eth_call' ? [JSON.stringify(params)] : [],
    );
    // The call of the visitor and that of the off-ramp for each limit; state and threshold.
    expect(asked).toHaveLength(2 * limits.length + 2);
    expect(new Set(asked).size).toBe(asked.length);
  });

  test('calls are counted; when those of the day are used up, it says so and the transaction is still served', async () => {
    const perDay = 12;
    const frugal = await serve({ destinations: service.destinations(), diagnosisCallsPerDay: perDay });
    const transaction = (gasLimit: number) => ask(`manual-execution?gasLimit=${gasLimit}`, stuck, frugal);
    expect((await transactionOf(stuck, '?gasLimit=100000', frugal)).transaction.gas).not.toBeNull();
    const spent = async () => Number(await metricOf(frugal, 'lanescan_diagnosis_calls_total'));
    expect(await spent()).toBeGreaterThan(0);
    for (let limit = 100_001; limit < 100_005; limit++) expect((await transaction(limit)).status).toBe(200);
    const { message } = expectError(await ask('diagnosis', stuck, frugal), 503, 'DIAGNOSIS_FAILED');
    expect(message).toMatch(/calls a day .* used up/);
    expect((await transaction(200_000)).status).toBe(200);
    expect(await spent()).toBeLessThanOrEqual(perDay);
    expect(frugal.log.filter((line) => line.includes('diagnosisCallsPerDay'))).toHaveLength(1);
    expect(await metricOf(frugal, 'lanescan_diagnoses_total{outcome="over-budget"}')).toMatch(/^[1-9]/);
  });

  test('it has a rate limit of its own', async () => {
    const limited = await serve({
      destinations: service.destinations(),
      rateLimit: { perSecond: 1_000, burst: 1_000, loopback: true },
    });
    const answers = await Promise.all(Array.from({ length: 35 }, () => ask('diagnosis', stuck, limited)));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expectError(refused[0] as (typeof answers)[0], 429, 'RATE_LIMITED');
    expect(Number(refused[0]?.headers['retry-after'])).toBeGreaterThan(0);
    expect((await limited.ask(`/v2/messages/${stuck.messageId}`)).status).toBe(200);
  });

  test('more than eight at once are rejected, and outcomes are counted', async () => {
    const busy = await serve();
    const { release } = holdCalls();
    let rejected = 0;
    // Another gas limit is another simulation.
    const asked = Array.from({ length: 12 }, async (_, place) => {
      const body = await transactionOf(stuck, `?gasLimit=${100_000 + place}`, busy);
      if (body.gasNote?.includes('Too many')) rejected++;
      return body;
    });
    await eventually(() => expect(rejected).toBe(4));
    expectError(await ask('diagnosis', stuck, busy), 503, 'DIAGNOSIS_FAILED');
    release();
    const tried = (await Promise.all(asked)).filter(({ trial }) => trial !== null);
    expect(tried).toHaveLength(8);
    for (const [outcome, count] of Object.entries({ succeeds: '8', refused: '5', unanswered: '0' }))
      expect(await metricOf(busy, `lanescan_diagnoses_total{outcome="${outcome}"}`), outcome).toBe(count);
  });

  test('without an endpoint, or with one that is down, it says so and nothing of the inside', async () => {
    const unable = await serve({});
    expect(await diagnosisOf(stuck, unable)).toMatchObject({
      outcome: 'untried',
      text: expect.stringContaining('no endpoint'),
      block: null,
    });
    service.takeDown();
    const broken = await serve();
    const answer = await ask('diagnosis', stuck, broken);
    expectError(answer, 503, 'DIAGNOSIS_FAILED');
    expect(answer.text).not.toContain('127.0.0.1');
    expect(answer.headers['retry-after']).toBeDefined();
    expect(await metricOf(broken, 'lanescan_diagnoses_total{outcome="unanswered"}')).toBe('1');
    expect((await transactionOf(stuck, '', broken)).trial).toBeNull();
  });

  test('lanescan diagnose tells the same, beside the database and over the network', async () => {
    const config = writeConfiguration(service.lab, freshFolder());
    const env = { DATABASE_URL: service.server.store.url };
    const near = await lanescan(['diagnose', stuck.messageId, '--config', config], { env });
    expect(near).toMatchObject({ code: 0, stderr: '' });
    expect(near.stdout).toMatch(/^Would succeed on .*, block \d+/);
    expect(near.stdout).toMatch(
      new RegExp(`\\$ curl 'http.*/v2/messages/${stuck.messageId}/manual-execution\\?gasLimit=\\d+'`),
    );
    const far = await lanescan(['diagnose', stuck.messageId, '--url', service.server.url]);
    expect(far.stdout.replace(service.server.url, 'URL').replace(/block.*/, '')).toBe(
      near.stdout.replace(/http[^/]*\/\/[^/]*/, 'URL').replace(/block.*/, ''),
    );
    const json = await lanescan(['diagnose', stuck.messageId, '--url', service.server.url, '--json']);
    expect(JSON.parse(json.stdout)).toEqual(await diagnosisOf(stuck));

    const unable = await serve({});
    const refused = await lanescan(['diagnose', stuck.messageId, '--url', unable.url]);
    expect(refused.code).toBe(3);
    expect(refused.stdout).toMatch(/^Not tried on .*\n.*has no endpoint of/);
  });
});

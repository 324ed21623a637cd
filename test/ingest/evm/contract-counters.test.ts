// @module-tag slow: starts chain nodes; consistency.test.ts is the quick pass
/** What real contracts of every version count and say of themselves, against what was read from them. */
import { decodeFunctionResult, encodeFunctionData, type Hex, numberToHex, parseAbi } from 'viem';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import {
  callOf,
  executionStateChanged15,
  executionStateChanged16,
  executionStateChanged20,
  getExecutionState16,
} from '../../../src/ingest/evm/contracts/abi.ts';
import type { ChainLog } from '../../../src/ingest/evm/rpc/chain.ts';
import type { Store } from '../../../src/store/store.ts';
import { FINALITY, indexOnce, labSource, recordOf } from '../../chain/indexing.ts';
import { startNodeProxy } from '../../chain/node-proxy.ts';
import { openTestStore } from '../../database.ts';
import { type Lab, type Lane, type SentMessage, startLab } from '../../lab/lab.ts';

let lab: Lab;
let store: Store;
/** The newest message of each lane. */
const uncommitted = new Map<Lane, SentMessage>();

beforeAll(async () => {
  lab = await startLab();
  for (const lane of lab.lanes) {
    const messages = await lane.send({ count: 3 });
    if (lane.version !== '2.0') await lane.commit(messages);
    if (lane.version === '1.2' || lane.version === '1.5') await lane.bless(messages);
    await lane.execute(messages[0] as SentMessage);
    uncommitted.set(lane, await lane.sendOne());
  }
  for (const network of lab.networks) await network.mine(3 * FINALITY);
  store = await openTestStore();
});
afterAll(async () => {
  await store?.close();
  await lab?.stop();
});

test('counts of all on-ramps and commit stores agree with a whole history', async () => {
  const logLines = await indexOnce(store, lab, {
    sources: lab.networks.map((network) => labSource(network, { verify: 'head' })),
  });
  expect(logLines.filter((line) => /not found|no event|could not be compared/.test(line))).toEqual([]);
  const counted = await store.countedLanes({});
  const sent = counted.filter(({ kind }) => kind === 'sent');
  const committed = counted.filter(({ kind }) => kind === 'committed');
  expect(sent).toHaveLength(lab.lanes.length);
  expect(committed).toHaveLength(lab.lanes.filter(({ version }) => version !== '2.0').length);
  for (const { lastNumber, isWhole, present } of sent)
    expect({ lastNumber, isWhole, present }).toEqual({
      lastNumber: '4',
      isWhole: true,
      present: [{ from: '1', to: '4' }],
    });
  for (const { lastNumber, present } of committed)
    expect({ lastNumber, present }).toEqual({ lastNumber: '3', present: [{ from: '1', to: '3' }] });
  for (const network of lab.networks) {
    const { selector } = labSource(network).network;
    expect(await store.index.checks.findings(selector)).toEqual([]);
  }
});

test('executions that an endpoint leaves out are missed, on lanes of every version', async () => {
  const executions = [executionStateChanged15, executionStateChanged16, executionStateChanged20];
  const hidden = new Set<string | undefined>(executions.map(({ topic }) => topic));
  const own = await openTestStore();
  onTestFinished(() => own.close());
  const sources = [];
  for (const network of lab.networks) {
    const proxy = await startNodeProxy(network.url);
    onTestFinished(() => proxy.close());
    proxy.interfere = ({ method }, truth) =>
      method === 'eth_getLogs'
        ? (truth as readonly ChainLog[]).filter(({ topics }) => !hidden.has(topics[0]))
        : truth;
    sources.push(labSource(network, { rpc: [proxy.url], verify: 'off' }));
  }
  await indexOnce(own, lab, { sources });
  const found: string[] = [];
  for (const { network } of sources) {
    for (const { kind, subject } of await own.index.checks.findings(network.selector))
      if (kind === 'executions-missing') found.push(subject);
  }
  const offRamps = new Set(lab.lanes.map(({ ramps }) => ramps.offRamp.address.toLowerCase()));
  expect(new Set(found)).toEqual(offRamps);
});

test('executions that happen while the off-ramp is asked are not reported as missing', async () => {
  const lane = lab.lane('1.6', 'a');
  const dest = lab.network(lane.to);
  const waiting = await lane.send({ count: 4 });
  await lane.commit([uncommitted.get(lane) as SentMessage, ...waiting]);
  const stateOf = (message: SentMessage) => {
    const { data } = callOf(
      getExecutionState16,
      lane.ramps.offRamp.address,
      lab.network(lane.from).selector,
      message.sequenceNumber,
    );
    return data;
  };
  const own = await openTestStore();
  onTestFinished(() => own.close());
  const proxy = await startNodeProxy(dest.url);
  onTestFinished(() => proxy.close());
  const executed: SentMessage[] = [];
  let isExecuting = false;
  // Each time that the off-ramp is asked about the next one, it has just been executed.
  proxy.interfere = async ({ method, params }, truth) => {
    const next = waiting[executed.length];
    if (method !== 'eth_call' || !next || isExecuting) return truth;
    if ((params[0] as { readonly data: Hex }).data !== stateOf(next)) return truth;
    isExecuting = true;
    await lane.execute(next);
    executed.push(next);
    isExecuting = false;
    return numberToHex(2, { size: 32 });
  };
  const sources = lab.networks.map((network) =>
    labSource(network, network === dest ? { rpc: [proxy.url] } : {}),
  );
  const logLines = await indexOnce(own, lab, { sources });
  expect(executed.length).toBeGreaterThan(0);
  expect(logLines.filter((line) => /not found in its history/.test(line))).toEqual([]);
  const { selector } = labSource(dest).network;
  expect(await own.index.checks.findings(selector)).toEqual([]);
});

test('a root of a commit store that is blessed for good needs no event of its own', async () => {
  const lane = lab.lane('1.5', 'a');
  const dest = lab.network(lane.to);
  const abi = parseAbi([
    'function owner() view returns (address)',
    'function ownerRemoveThenAddPermaBlessedCommitStores(address[] removes, address[] adds)',
  ]);
  const to = dest.contracts['1.5']?.rmn as Hex;
  const [latest, asked] = ['latest', encodeFunctionData({ abi, functionName: 'owner' })];
  const answer = await dest.rpc<Hex>('eth_call', [{ to, data: asked }, latest]);
  const owner = decodeFunctionResult({ abi, functionName: 'owner', data: answer });
  const data = encodeFunctionData({
    abi,
    functionName: 'ownerRemoveThenAddPermaBlessedCommitStores',
    args: [[], [lane.ramps.commitStore?.address as Hex]],
  });
  await dest.rpc('hardhat_impersonateAccount', [owner]);
  await dest.rpc('eth_sendTransaction', [{ from: owner, to, data }]);
  const message = uncommitted.get(lane) as SentMessage;
  await lane.commit([message]);
  // The commit store is asked ten minutes after the commit: by then an event would have come.
  await lab.travel(660);
  for (const network of lab.networks) await network.mine(3 * FINALITY);
  const own = await openTestStore();
  onTestFinished(() => own.close());
  await indexOnce(own, lab);
  expect(await recordOf(own, message)).toMatchObject({ status: 'BLESSED' });
});

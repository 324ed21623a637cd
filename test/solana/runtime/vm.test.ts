/** The scripted runtime against Solana's real virtual machine: the same plans come to the same logs, calls and failures. */
import { describe, expect, test } from 'vitest';
import { createVmRuntime, scriptAccount } from '../../lab/svm/vm-runtime.ts';
import { createSolanaWorld, type SolanaWorld } from '../ccip-world.ts';
import { createTraffic } from '../traffic.ts';
import type { LedgerTransaction } from './ledger.ts';
import { type Call, COMPUTE_BUDGET, customFailure, runTransaction, type TransactionPlan } from './runtime.ts';

/** Compute units depend on the program's code, which is not the genuine one in either. */
const plain = (line: string) => line.replace(/consumed \d+ of \d+ compute/, 'consumed compute');

/** What both must agree on. The stand-in's calls have further accounts, which it needs for itself. */
function outcomeOf({ message, meta }: LedgerTransaction): unknown {
  const keys = [...message.accountKeys, ...meta.loadedAddresses.writable, ...meta.loadedAddresses.readonly];
  return {
    err: meta.err,
    logs: meta.logMessages.map(plain),
    inner: meta.innerInstructions.map(({ index, instructions }) => ({
      index,
      instructions: instructions.map(({ programIdIndex, data, stackHeight }) => ({
        program: keys[programIdIndex],
        data,
        stackHeight,
      })),
    })),
    returnData: meta.returnData,
  };
}

function transactionsOf({ cluster, programs }: SolanaWorld): readonly LedgerTransaction[] {
  return [programs.router, programs.offRamp].flatMap((program) =>
    cluster
      .signaturesFor(program, { upTo: cluster.head, limit: 10_000 })
      .map(({ signature }) => cluster.transaction(signature) as LedgerTransaction),
  );
}

test('traffic of all kinds runs alike', { tags: 'slow' }, () => {
  const traffic = {
    seed: 'both runtimes',
    hasTruncation: false,
    failures: [customFailure(6_001), customFailure(1)],
  };
  const [scripted, real] = [undefined, createVmRuntime()].map((run) => {
    const world = createSolanaWorld({ startedAtMs: 0, ...(run && { run }) });
    createTraffic(world, traffic)(90);
    return world;
  }) as [SolanaWorld, SolanaWorld];
  expect(transactionsOf(real).map(outcomeOf)).toEqual(transactionsOf(scripted).map(outcomeOf));
  expect(real.truth).toEqual(scripted.truth);
  const failed = transactionsOf(real).filter(({ meta }) => meta.err !== null);
  expect(failed.length).toBeGreaterThan(5);
  expect(transactionsOf(real).some(({ version }) => version === 0)).toBe(true);
});

test('logs are cut off alike: what does not fit is left out, and shorter lines after it are kept', () => {
  for (const isTruncated of [true, false]) {
    const world = createSolanaWorld({ run: createVmRuntime() });
    const sent = world.send({ isTruncated, tokens: [5n] });
    const message = world.receive();
    const commit = world.commit([message], { isTruncated });
    const execution = world.execute(message, { isTruncated });
    const traces = [sent, commit, execution].map((fact) => fact?.logIndex !== undefined);
    expect(traces).toEqual([!isTruncated, !isTruncated, !isTruncated]);
    expect(sent.trace).toBe(isTruncated ? 'relayed copy' : 'log');
    const logMessages = world.cluster.transaction(sent.signature)?.meta.logMessages ?? [];
    const cutAt = logMessages.indexOf('Log truncated');
    expect(cutAt >= 0).toBe(isTruncated);
    if (isTruncated) expect(logMessages.length).toBeGreaterThan(cutAt + 1);
  }
});

describe('one call', () => {
  const landing = {
    signature: '2'.repeat(87),
    slot: 5,
    recentBlockhash: 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG',
  };
  const run = createVmRuntime();
  const program = scriptAccount.replace(/.$/, '4');
  const other = scriptAccount.replace(/.$/, '7');
  const plan = (call: Call): TransactionPlan => ({
    feePayer: other.replace(/^./, '3'),
    instructions: [call],
  });
  test.each<readonly [string, Call]>([
    ['that logs nothing', { program }],
    ['with an empty text and an empty value', { program, steps: [{ log: '' }, { data: new Uint8Array() }] }],
    [
      'whose callee returns a value that it does not look at',
      { program, steps: [{ call: { program: other, steps: [{ returns: new Uint8Array([7]) }] } }] },
    ],
    [
      'that forgets the value of an earlier callee',
      {
        program,
        steps: [
          { call: { program: other, steps: [{ returns: new Uint8Array([7]) }] } },
          { call: { program: other, data: new Uint8Array([1]) } },
        ],
      },
    ],
    [
      'that fails after it has returned a value',
      { program, steps: [{ returns: new Uint8Array([7]) }, { fails: customFailure(17) }] },
    ],
    [
      'that calls itself',
      { program, steps: [{ call: { program, data: new Uint8Array([1]), steps: [{ log: 'inside' }] } }] },
    ],
    [
      'of a built-in program',
      { program: COMPUTE_BUDGET, isNative: true, data: new Uint8Array([2, 0, 1, 0, 0]) },
    ],
  ])('%s', (_, call) => {
    expect(outcomeOf(run(plan(call), landing))).toEqual(outcomeOf(runTransaction(plan(call), landing)));
  });
});

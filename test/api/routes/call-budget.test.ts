/** The budget of calls to RPC endpoints: a rate and a number a day for each network, over all processes of a server. */
import { expect, test } from 'vitest';
import { BudgetError, createCallBudget } from '../../../src/api/execution/call-budget.ts';
import type { TokenUse } from '../../../src/api/server/rate-limit.ts';
import type { WorkerPeers } from '../../../src/api/server/worker-peers.ts';
import { fuji, sepolia } from '../../fixtures.ts';

/** Processes that hear of each other at once. */
function linkedPeers(count: number): WorkerPeers[] {
  const receivers: ((use: TokenUse) => void)[] = [];
  return Array.from({ length: count }, (_, own) => ({
    scrape: async () => '',
    onMetricsRequest: () => undefined,
    sendTokenUse: (_name, use) => {
      for (const [place, receive] of receivers.entries()) if (place !== own) receive(use);
    },
    onTokenUse: (_name, receive) => {
      receivers[own] = receive;
    },
  }));
}

const UNLIMITED = 1_000_000_000;
/** A call in three hours: whatever comes after the first one would have to wait for longer than anybody does. */
const SLOWEST = 0.0001;

test('the number of calls a day holds over all processes, for each network, until the next day', async () => {
  let now = Date.UTC(2026, 0, 31, 23, 59);
  const warnings: unknown[] = [];
  const counted: number[] = [];
  const budgets = linkedPeers(3).map((peers) =>
    createCallBudget({
      log: { warn: (text: unknown) => void warnings.push(text) },
      perDay: 20,
      peers,
      onCalls: (calls) => void counted.push(calls),
      now: () => now,
    }),
  );
  for (const budget of [...budgets, budgets[0]]) await budget?.spend(fuji, 5, UNLIMITED);
  for (const budget of [...budgets, ...budgets])
    await expect(budget.spend(fuji, 1, UNLIMITED)).rejects.toThrow(/calls a day .* is used up.*00:00 UTC/);
  expect(counted).toEqual([5, 5, 5, 5]);
  // Each process says it once.
  expect(warnings).toHaveLength(3);
  expect(warnings[0]).toContain('diagnosisCallsPerDay');

  await budgets[1]?.spend(sepolia, 20, UNLIMITED);
  await expect(budgets[2]?.spend(sepolia, 1, UNLIMITED)).rejects.toThrow(BudgetError);
  now += 60_000;
  await budgets[2]?.spend(fuji, 20, UNLIMITED);
  await expect(budgets[0]?.spend(fuji, 1, UNLIMITED)).rejects.toThrow(BudgetError);
});

test('the rate holds over all processes, and for each network', async () => {
  const log = { warn: () => undefined };
  const [one, other] = linkedPeers(2).map((peers) => createCallBudget({ log, peers }));
  await one?.spend(fuji, 1, SLOWEST);
  await expect(other?.spend(fuji, 1, SLOWEST)).rejects.toThrow(/for the rate of its endpoints/);
  await expect(one?.spend(fuji, 1, SLOWEST)).rejects.toThrow(BudgetError);
  await other?.spend(sepolia, 1, SLOWEST);
});

test('calls that come too fast wait for their time', async () => {
  const budget = createCallBudget({ log: { warn: () => undefined } });
  const beganAt = performance.now();
  // 50 of them may be sent at once; the others take 200 ms.
  for (let call = 0; call < 12; call++) await budget.spend(fuji, 5, 50);
  expect(performance.now() - beganAt).toBeGreaterThan(150);
});

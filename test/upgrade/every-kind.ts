/** A store with messages and facts of every kind, in every state that a store can have them. */
import fc from 'fast-check';
import type pg from 'pg';
import type { Fact } from '../../src/domain/facts.ts';
import type { Message } from '../../src/domain/message.ts';
import type { Store } from '../../src/store/store.ts';
import { KEPT_ATTEMPTS } from '../../src/store/write/earlier-attempts.ts';
import { anyFact } from '../fixtures/any-fact.ts';
import {
  canonical,
  factsAbout,
  fuji,
  makeExecuted,
  makeExecutionDetails,
  makeMessage,
  makeRange,
  makeRootBlessed,
  makeSent,
  makeSnapshot,
  makeSubject,
  makeToken,
  sepolia,
  solanaDevnet,
} from '../fixtures.ts';

const seed = 20_260_101;
const versions = [null, '1.2.0', '1.5.0', '1.6.0', '1.7.0', '2.0.0'];
const HOSTILE = `{"a":"\\u0000 \ud800 '; drop table message; --  \u2028 é","__proto__":{"x":1},"1":2,"constructor":null}`;

/** Applies the facts a few at a time, so that messages change often. */
export async function fillWithEveryKind(store: Store, client: pg.ClientBase): Promise<void> {
  for (const facts of everyKind()) await store.apply(facts);
  await removeBlocks(store);
  await client.query(
    `insert into token (network, address, symbol) values (-1, '\\x01', E'\\x01 \u00fc');
     insert into execution_input values ('\\x02', '{}', '2026-01-01');
     insert into webhook_subscription (name, position) values ('ops', 3);
     insert into webhook_delivery (message_id, subscription, position, next_attempt_at) values ('\\x01', 'ops', 3, now());
     insert into mirror (source, complete_since) values ('http://one', '1970-01-01');
     insert into index_network (selector) values (-5);
     insert into index_backlog (network, from_block, to_block, purpose) values (-5, 1, 2, 'history')`,
  );
}

/** Whether schema 21 could hold it, which had hashes as texts. */
function couldBeStored(fact: Fact): boolean {
  if (fact.kind === 'Snapshot') return true;
  const { at, blockHash, transactionHash } = fact.seen;
  const isText = (text: string) => !/[\0\p{Surrogate}]/u.test(text);
  return !Number.isNaN(Date.parse(at)) && isText(blockHash) && isText(transactionHash ?? '');
}

function everyKind(): readonly (readonly Fact[])[] {
  const subjects = versions.flatMap((version, at) =>
    [0, 1].map((n) => makeSubject(version, 1 + at * 10 + n)),
  );
  const lives = subjects.flatMap((subject, at) =>
    fc.sample(fc.array(factsAbout(subject), { minLength: 3, maxLength: 9 }), { numRuns: 2, seed: seed + at }),
  );
  const others = fc.sample(anyFact, { numRuns: 400, seed }).filter(couldBeStored);
  const batches = Array.from({ length: 10 }, (_, n) => others.filter((__, index) => index % 10 === n));
  return [...lives, ...batches, ...special()];
}

const many = makeMessage({ number: 500, tokenAmounts: [makeToken(sepolia, fuji, 'LINK')] });
const removed = makeMessage({ number: 501, data: `0x${'ab'.repeat(20_000)}` });
const range = makeMessage({ number: 502 });
export const REMOVED_BLOCK = 7_000;

function special(): readonly (readonly Fact[])[] {
  const failures = Array.from({ length: KEPT_ATTEMPTS + 44 }, (_, n): Fact[] => [
    makeExecuted(many, false, 6_000 + n),
    makeExecutionDetails(many, `0x${n.toString(16).padStart(8, '0')}`, 6_000 + n, String(n)),
  ]);
  const toSolana = makeMessage({ number: 503, destNetworkInfo: solanaDevnet });
  const fromSolana = makeMessage({ number: 504, sourceNetworkInfo: solanaDevnet });
  const at = (number: number, sendTimestamp: string, more: Partial<Message> = {}) =>
    makeSnapshot(canonical({ ...makeMessage({ number, ...more }), sendTimestamp }));
  const derived: Fact = { ...makeSnapshot(makeMessage({ number: 507 })), derived: ['$.nonce', '$.data'] };
  return [
    [makeSent(many), ...failures.flat()],
    [makeSnapshot({ ...many, status: 'FAILED', readyForManualExecution: true })],
    [makeSent(removed), makeSent(range)],
    [makeExecuted(removed, false, REMOVED_BLOCK), makeExecutionDetails(removed, HOSTILE, REMOVED_BLOCK)],
    [makeRange('Committed', range, 1, 700)],
    [makeRootBlessed(range, 1, 700)],
    [makeSent(toSolana), makeExecuted(toSolana, true)],
    [makeSent(fromSolana), makeExecuted(fromSolana, false)],
    [at(505, '1970-01-01T00:00:00.000Z', { status: 'SUCCESS' })],
    [at(506, '9999-12-31T23:59:59.999Z', { tokenAmounts: [makeToken(sepolia, fuji, 'LINK')] })],
    [derived],
    [{ ...makeSnapshot(makeMessage({ number: 508 })), message: hostile() }],
  ];
}

function hostile(): Message {
  return canonical({ ...makeMessage({ number: 508 }), later: JSON.parse(HOSTILE) });
}

/** Reorganisations: of an execution, of a blessing, and of the sending of a message, which disappears. */
async function removeBlocks(store: Store): Promise<void> {
  const network = (info: { readonly chainSelector: string }, block: string) => ({
    network: info.chainSelector,
    blockHash: block,
  });
  const blockOf = (fact: Fact) => (fact.kind === 'Snapshot' ? '' : fact.seen.blockHash);
  await store.apply([], [network(fuji, blockOf(makeExecuted(removed, false, REMOVED_BLOCK)))]);
  await store.apply([], [network(sepolia, blockOf(makeSent(removed)))]);
  await store.apply([], [network(fuji, blockOf(makeExecuted(many, false, 6_290)))]);
}

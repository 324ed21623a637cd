/** Facts into a message: the laws of the fold, and what each fact does to the record. */
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { zeroAddresses } from '../../src/domain/addresses.ts';
import type { Fact, Snapshot } from '../../src/domain/facts.ts';
import { foldFacts, joinSnapshots, statusCause } from '../../src/domain/fold.ts';
import { type Status, statusRank, usesVerifiers } from '../../src/domain/lifecycle.ts';
import type { Message } from '../../src/domain/message.ts';
import { parseMessage } from '../../src/domain/records/message-parser.ts';
import {
  acceptedAs,
  canonical,
  factsAbout,
  makeExecuted,
  makeFinalized,
  makeManualExecutionOpened,
  makeMessage,
  makePolicy,
  makeRange,
  makeRootBlessed,
  makeSent,
  makeSnapshot,
  makeSubject,
  makeToldBySource,
  makeVerifier,
  makeVerifierCompleted,
  sepolia,
  verifierAddress,
} from '../fixtures.ts';

const versions = ['1.5.0', '1.6.0', '2.0.0', null] as const;
const runs = { numRuns: 300 };

const subject = fc
  .tuple(fc.constantFrom(...versions), fc.boolean())
  .map(([version, bySource]) => (bySource ? makeToldBySource(makeSubject(version)) : makeSubject(version)));

/** Facts about one message, told by sources that agree on its version. */
const story = subject.chain((message) => fc.array(factsAbout(message), { maxLength: 10 }));

/** The same, with sources that contradict each other about the version and the verifiers. */
const quarrel = fc.array(
  subject.chain((message) => factsAbout(message)),
  { maxLength: 10 },
);

const anyStory = fc.oneof(story, quarrel);

/** The facts in another order, some of them told more than once. */
const retold = (facts: readonly Fact[]) =>
  fc
    .array(fc.nat(), { minLength: facts.length, maxLength: facts.length })
    .chain((copies) =>
      fc
        .shuffledSubarray(
          facts.flatMap((fact, i) => Array.from({ length: 1 + ((copies[i] ?? 0) % 3) }, () => fact)),
          { minLength: 0 },
        )
        .map((some) => [...some, ...facts]),
    )
    .chain((all) => fc.shuffledSubarray(all, { minLength: all.length }));

const isSnapshot = (fact: Fact): fact is Snapshot => fact.kind === 'Snapshot';
const tellsOfSending = (fact: Fact) => fact.kind === 'Sent' || isSnapshot(fact);

describe('the laws of the fold', () => {
  it('is blind to order and repetition', () => {
    fc.assert(
      fc.property(
        anyStory.chain((facts) => fc.tuple(fc.constant(facts), retold(facts))),
        ([facts, again]) => {
          expect(foldFacts(again)).toEqual(foldFacts(facts));
        },
      ),
      runs,
    );
  });

  it('gives the same record whichever way snapshots are joined first', () => {
    const joinInOrder = (messages: readonly Message[], choices: readonly number[]): Message | undefined => {
      let rest = [...messages];
      for (const choice of choices) {
        if (rest.length < 2) break;
        const i = choice % rest.length;
        const j = (i + 1 + (choice % (rest.length - 1))) % rest.length;
        const one = rest[i];
        const other = rest[j];
        if (one && other) rest = [...rest.filter((_, k) => k !== i && k !== j), joinSnapshots(one, other)];
      }
      return rest.reduce<Message | undefined>((all, one) => (all ? joinSnapshots(all, one) : one), undefined);
    };
    fc.assert(
      fc.property(anyStory, fc.array(fc.nat(), { maxLength: 10 }), (facts, choices) => {
        const snapshots = facts.filter(isSnapshot).map((fact) => fact.message);
        const joined = joinInOrder(snapshots, choices);
        const grouped: Fact[] = facts.filter((fact) => !isSnapshot(fact));
        if (joined) grouped.push(makeSnapshot(joined));
        expect(foldFacts(grouped)).toEqual(foldFacts(facts));
      }),
      runs,
    );
  });

  it('joins snapshots idempotently, commutatively and associatively', () => {
    const snapshots = anyStory.map((facts) => facts.filter(isSnapshot).map((fact) => fact.message));
    fc.assert(
      fc.property(snapshots, (messages) => {
        const [a, b, c] = messages;
        if (!a) return;
        expect(joinSnapshots(a, a)).toEqual(a);
        if (!b) return;
        expect(joinSnapshots(a, b)).toEqual(joinSnapshots(b, a));
        expect(joinSnapshots(joinSnapshots(a, b), b)).toEqual(joinSnapshots(a, b));
        if (!c) return;
        expect(joinSnapshots(joinSnapshots(a, b), c)).toEqual(joinSnapshots(a, joinSnapshots(b, c)));
      }),
      runs,
    );
  });

  it('knows no record until somebody tells of the sending, and one ever after', () => {
    fc.assert(
      fc.property(anyStory, (facts) => {
        const before = facts.filter((fact) => !tellsOfSending(fact));
        expect(foldFacts(before)).toBeUndefined();
        expect(foldFacts(facts) !== undefined).toBe(facts.some(tellsOfSending));
      }),
      runs,
    );
  });

  it('never moves a status back when facts are added, a snapshot of an older status included', () => {
    fc.assert(
      fc.property(story, (facts) => {
        let rank = -1;
        for (let count = 1; count <= facts.length; count++) {
          const record = foldFacts(facts.slice(0, count));
          if (!record) continue;
          expect(statusRank(record.status)).toBeGreaterThanOrEqual(rank);
          rank = statusRank(record.status);
        }
      }),
      runs,
    );
  });

  it('never takes back that a verifier has completed', () => {
    fc.assert(
      fc.property(story, (facts) => {
        const completed = new Set<string>();
        for (let count = 1; count <= facts.length; count++) {
          const record = foldFacts(facts.slice(0, count));
          const items = record?.verifiers?.items ?? [];
          for (const item of items) {
            // What only follows from the execution (no data) holds for the verifiers that the policy of the time requires.
            if (item.status === 'COMPLETED') {
              if (item.verification?.data !== '0x') completed.add(item.sourceAddress);
            } else expect(completed).not.toContain(item.sourceAddress);
          }
        }
      }),
      runs,
    );
  });

  it('reaches exactly the furthest status that any fact speaks for', () => {
    const spokenFor = (fact: Fact, version: string | null): Status => {
      switch (fact.kind) {
        case 'Snapshot':
          return fact.message.status;
        case 'Executed':
          return fact.success ? 'SUCCESS' : 'FAILED';
        case 'Committed':
          return 'COMMITTED';
        case 'Blessed':
          return 'BLESSED';
        case 'VerifierCompleted':
          return 'VERIFYING';
        case 'SourceFinalized':
          return usesVerifiers(version) ? 'VERIFYING' : 'SOURCE_FINALIZED';
        default:
          return 'SENT';
      }
    };
    fc.assert(
      fc.property(story, (facts) => {
        const record = foldFacts(facts);
        if (!record) return;
        const ranks = facts.map((fact) => statusRank(spokenFor(fact, record.version)));
        const furthest = Math.max(...ranks);
        const isVerified = record.status === 'VERIFIED' && furthest < statusRank('VERIFIED');
        // A destination that has changed its mind may have been content before.
        if (isVerified && facts.some(({ kind }) => kind === 'VerifierPolicy')) return;
        if (isVerified)
          expect(record.verifiers?.items.filter((v) => v.isRequired && v.status === 'PENDING')).toEqual([]);
        else expect(statusRank(record.status)).toBe(furthest);
      }),
      runs,
    );
  });

  it('folds canonical parts to a canonical record', () => {
    fc.assert(
      fc.property(story, (facts) => {
        const record = foldFacts(facts);
        if (!record) return;
        expect(parseMessage(structuredClone(record))).toEqual(acceptedAs(record));
      }),
      runs,
    );
  });

  it('tells what a status rests on whatever the order of the facts', () => {
    fc.assert(
      fc.property(
        story.chain((facts) => fc.tuple(fc.constant(facts), retold(facts))),
        ([facts, again]) => {
          const record = foldFacts(facts);
          if (record) expect(statusCause(record, again)).toEqual(statusCause(record, facts));
        },
      ),
      runs,
    );
  });

  it('does not change the facts it is given', () => {
    fc.assert(
      fc.property(anyStory, (facts) => {
        const before = structuredClone(facts);
        foldFacts(facts);
        expect(facts).toEqual(before);
      }),
      { numRuns: 100 },
    );
  });
});

describe('the path of a message', () => {
  const paths = (version: string | null): [string, (message: Message) => Fact[], Status, boolean][] => {
    const verifying = usesVerifiers(version);
    const finalized = verifying ? 'VERIFYING' : 'SOURCE_FINALIZED';
    const committed = (m: Message) => makeRange('Committed', m, 1, 9);
    const blessed = (m: Message) => makeRange('Blessed', m, 1, 9);
    const verified = (m: Message) => ['Alice', 'Bob', 'Carol'].map((name) => makeVerifierCompleted(m, name));
    return [
      ['sent', () => [], 'SENT', false],
      ['final on its source', (m) => [makeFinalized(m)], finalized, false],
      ['failed at once', (m) => [makeExecuted(m, false)], 'FAILED', true],
      ['succeeded at once', (m) => [makeExecuted(m, true)], 'SUCCESS', false],
      [
        'failed, then succeeded',
        (m) => [makeExecuted(m, false), makeExecuted(m, true, 5001)],
        'SUCCESS',
        false,
      ],
      [
        'succeeded, then failed',
        (m) => [makeExecuted(m, true), makeExecuted(m, false, 5001)],
        'SUCCESS',
        false,
      ],
      ['failed, then final', (m) => [makeExecuted(m, false), makeFinalized(m)], 'FAILED', true],
      ['opened for manual execution only', (m) => [makeManualExecutionOpened(m)], 'SENT', false],
      [
        'succeeded after being opened',
        (m) => [makeManualExecutionOpened(m), makeExecuted(m, true)],
        'SUCCESS',
        false,
      ],
      ...(verifying
        ? ([
            ['with one verifier', (m) => [makeVerifierCompleted(m, 'Alice')], 'VERIFYING', false],
            ['with an unknown verifier', (m) => [makeVerifierCompleted(m, 'nobody')], 'VERIFYING', false],
            [
              'with the required verifiers only',
              (m) => [makeVerifierCompleted(m, 'Alice'), makeVerifierCompleted(m, 'Bob')],
              'VERIFYING',
              false,
            ],
            [
              'with the optional verifier and one required',
              (m) => [makeVerifierCompleted(m, 'Carol'), makeVerifierCompleted(m, 'Bob')],
              'VERIFYING',
              false,
            ],
            ['with all verifiers', verified, 'VERIFIED', false],
            [
              'verifying and opened',
              (m) => [makeFinalized(m), makeManualExecutionOpened(m)],
              'VERIFYING',
              false,
            ],
            ['verified and opened', (m) => [...verified(m), makeManualExecutionOpened(m)], 'VERIFIED', true],
            ['verified and failed', (m) => [...verified(m), makeExecuted(m, false)], 'FAILED', true],
          ] satisfies ReturnType<typeof paths>)
        : ([
            ['committed', (m) => [committed(m)], 'COMMITTED', false],
            ['committed, then final', (m) => [committed(m), makeFinalized(m)], 'COMMITTED', false],
            ['blessed', (m) => [committed(m), blessed(m)], 'BLESSED', false],
            ['blessed before committed', (m) => [blessed(m), committed(m)], 'BLESSED', false],
            [
              'final and opened',
              (m) => [makeFinalized(m), makeManualExecutionOpened(m)],
              'SOURCE_FINALIZED',
              false,
            ],
            ['committed and opened', (m) => [committed(m), makeManualExecutionOpened(m)], 'COMMITTED', true],
            ['blessed and opened', (m) => [blessed(m), makeManualExecutionOpened(m)], 'BLESSED', true],
          ] satisfies ReturnType<typeof paths>)),
    ];
  };

  for (const version of versions) {
    test.each(paths(version))(`version ${version}: %s`, (_, facts, status, ready) => {
      const message = makeSubject(version);
      const record = foldFacts([...facts(message), makeSent(message)]);
      expect(record).toMatchObject({ status, readyForManualExecution: ready });
    });
  }

  it('steps through every status of a commit lane in turn', () => {
    const message = makeSubject('1.5.0');
    const facts: Fact[] = [
      makeSent(message),
      makeFinalized(message),
      makeRange('Committed', message, 1, 1),
      makeRange('Blessed', message, 1, 1, 4001),
      makeExecuted(message, false),
      makeExecuted(message, true, 5001),
    ];
    expect(facts.map((_, i) => foldFacts(facts.slice(0, i + 1))?.status)).toEqual([
      'SENT',
      'SOURCE_FINALIZED',
      'COMMITTED',
      'BLESSED',
      'FAILED',
      'SUCCESS',
    ]);
  });
});

describe('the outcome', () => {
  const message = makeMessage();

  it('takes receipt, time and delivery time in milliseconds from the execution that decided it', () => {
    const executed = makeExecuted(message, true, 5002);
    expect(foldFacts([makeExecuted(message, false, 5001), makeSent(message), executed])).toMatchObject({
      status: 'SUCCESS',
      receiptTransactionHash: executed.seen.transactionHash,
      receiptTimestamp: executed.seen.at,
      deliveryTime: 5_001_000,
      readyForManualExecution: false,
    });
  });

  it('counts the last of several failures', () => {
    const last = makeExecuted(message, false, 5003);
    const facts = [last, makeSent(message), makeExecuted(message, false, 5001)];
    expect(foldFacts(facts)?.receiptTransactionHash).toBe(last.seen.transactionHash);
  });

  it('measures the delivery from the sending that counts', () => {
    const again = canonical({ ...message, sendTimestamp: '2026-01-01T00:10:00Z', sendBlockNumber: 1600 });
    const facts = [makeSent(again), makeSent(message), makeExecuted(message, true)];
    expect(foldFacts(facts)).toMatchObject({
      sendTimestamp: '2026-01-01T00:10:00.000Z',
      sendBlockNumber: 1600,
      deliveryTime: 5_000_000 - 600_000,
    });
  });

  it('is empty until executed', () => {
    expect(foldFacts([makeSent(message), makeRange('Committed', message, 1, 1)])).toMatchObject({
      receiptTransactionHash: null,
      receiptTimestamp: null,
      deliveryTime: null,
    });
  });

  it('is that of a snapshot which knows more than the chain has told so far', () => {
    const snapshot = makeMessage({ status: 'SUCCESS' });
    expect(foldFacts([makeSent(message), makeSnapshot(snapshot)])).toEqual(snapshot);
    expect(foldFacts([makeSnapshot(snapshot), makeExecuted(message, false)])).toEqual(snapshot);
  });

  it('is not taken back by an older snapshot', () => {
    const newer = makeMessage({ status: 'FAILED' });
    for (const status of ['SENT', 'SOURCE_FINALIZED', 'COMMITTED', 'BLESSED'] as const) {
      const older = makeMessage({ status });
      expect(joinSnapshots(newer, older)).toEqual(newer);
      expect(foldFacts([makeSnapshot(older), makeSent(message), makeExecuted(message, true)])?.status).toBe(
        'SUCCESS',
      );
    }
  });

  it('is ready for manual execution when a snapshot says committed and the chain says opened', () => {
    const facts = [makeSnapshot(makeMessage({ status: 'COMMITTED' })), makeManualExecutionOpened(message)];
    expect(foldFacts(facts)).toMatchObject({ status: 'COMMITTED', readyForManualExecution: true });
  });
});

describe('what was sent', () => {
  const message = makeMessage();

  it('is the chain’s own word before that of a snapshot that knows less', () => {
    const snapshot = makeMessage({ nonce: '7', data: null, status: 'COMMITTED' });
    expect(foldFacts([makeSnapshot(snapshot), makeSent(message)])).toEqual(
      makeMessage({ status: 'COMMITTED' }),
    );
  });

  it('is the snapshot with more known fields where only snapshots speak', () => {
    const poor = makeMessage({ nonce: null, routerAddress: null, status: 'SUCCESS' });
    const rich = makeMessage({ executor: null });
    expect(joinSnapshots(poor, rich)).toEqual(makeMessage({ status: 'SUCCESS' }));
  });

  it('is that of the later block when a message was included twice', () => {
    const again = makeMessage({ sendBlockNumber: 1007, sendTransactionHash: `0x${'7'.repeat(64)}` });
    expect(foldFacts([makeSent(again), makeSent(message)])).toEqual(again);
    expect(foldFacts([makeSent(message), makeSent(again)])).toEqual(again);
  });
});

describe('verifiers', () => {
  const items = [
    makeVerifier('Alice'),
    makeVerifier('Bob', { isRequired: false }),
    makeVerifier('Carol', { isRequired: false }),
    makeVerifier('Dave', { isRequired: false }),
  ];
  const withThreshold = (optionalThreshold: number) =>
    makeMessage({ version: '2.0.0', verifiers: { items, optionalThreshold } });

  test.each([
    [0, ['Alice'], 'VERIFIED'],
    [0, ['Bob', 'Carol', 'Dave'], 'VERIFYING'],
    [1, ['Alice'], 'VERIFYING'],
    [1, ['Alice', 'Dave'], 'VERIFIED'],
    [2, ['Alice', 'Dave'], 'VERIFYING'],
    [2, ['Alice', 'Dave', 'Dave'], 'VERIFYING'],
    [2, ['Alice', 'Dave', 'Bob'], 'VERIFIED'],
    [4, ['Alice', 'Bob', 'Carol', 'Dave'], 'VERIFYING'],
  ] as const)('with an optional threshold of %i, %j make it %s', (threshold, names, status) => {
    const message = withThreshold(threshold);
    const completions = names.map((name, i) => makeVerifierCompleted(message, name, 3500 + i));
    expect(foldFacts([...completions, makeSent(message)])?.status).toBe(status);
  });

  it('show the data and the time of their first word', () => {
    const message = withThreshold(1);
    const first = makeVerifierCompleted(message, 'Alice', 3500);
    const facts = [makeVerifierCompleted(message, 'Alice', 3600), makeSent(message), first];
    expect(foldFacts(facts)?.verifiers?.items[0]).toMatchObject({
      status: 'COMPLETED',
      verification: { data: first.data, timestamp: first.seen.at },
    });
  });

  it('are complete when two snapshots know one half each', () => {
    const completedAt = '2026-01-01T01:00:00.000Z';
    const knows = (...names: readonly string[]) =>
      makeMessage({
        version: '2.0.0',
        status: 'VERIFYING',
        verifiers: {
          items: ['Alice', 'Bob'].map((name) =>
            makeVerifier(name, names.includes(name) ? { completedAt } : {}),
          ),
          optionalThreshold: 0,
        },
      });
    const joined = joinSnapshots(knows('Alice'), knows('Bob'));
    expect(joined.verifiers).toEqual(knows('Alice', 'Bob').verifiers);
    expect(foldFacts([makeSent(knows()), makeSnapshot(joined)])?.status).toBe('VERIFIED');
  });

  it('verify nothing where there are none', () => {
    for (const verifiers of [null, { items: [], optionalThreshold: 0 }]) {
      const message = makeMessage({ version: '2.0.0', verifiers });
      expect(foldFacts([makeSent(message), makeFinalized(message)])?.status).toBe('VERIFYING');
    }
  });

  it('of a snapshot are kept when the chain told none', () => {
    const snapshot = withThreshold(1);
    const sent = makeSent(makeMessage({ version: '2.0.0' }));
    expect(foldFacts([sent, makeSnapshot(snapshot)])?.verifiers).toEqual(snapshot.verifiers);
  });
});

describe('the policy of the destination', () => {
  const address = (name: string) => verifierAddress(sepolia, name);
  /** Verifiers by their names on the source, and on the destination where they have others there. */
  const sentWith = (...names: readonly string[]) =>
    makeToldBySource(
      makeMessage({
        version: '2.0.0',
        verifiers: { items: names.map((name) => makeVerifier(name)), optionalThreshold: 0 },
      }),
    );
  const nobody = zeroAddresses.EVM;
  const names = new Map(
    ['Alice', 'Bob', 'Carol', 'Dave', 'Eve'].map((name) => [address(name), name] as const),
  ).set(nobody, '-');
  const listed = (...facts: readonly Fact[]) => {
    const verifiers = foldFacts(facts)?.verifiers;
    return {
      threshold: verifiers?.optionalThreshold,
      items: verifiers?.items.map(({ sourceAddress, destAddress, isRequired, status }) =>
        [
          names.get(sourceAddress),
          names.get(destAddress),
          isRequired ? 'required' : 'optional',
          status === 'COMPLETED' ? 'done' : 'pending',
        ].join(' '),
      ),
    };
  };

  it('is not known from the source: all are required, and nothing can be verified yet', () => {
    const message = sentWith('Alice', 'Bob');
    const facts = [
      makeSent(message),
      ...['Alice', 'Bob'].map((name) => makeVerifierCompleted(message, name)),
    ];
    expect(listed(...facts)).toEqual({
      threshold: 0,
      items: ['Alice - required done', 'Bob - required done'],
    });
    expect(foldFacts(facts)?.status).toBe('VERIFYING');
    expect(foldFacts([...facts, makePolicy(message, { required: ['Bob', 'Alice'] })])?.status).toBe(
      'VERIFIED',
    );
  });

  it('pairs verifiers that have one address on both chains, whatever the order', () => {
    const message = sentWith('Alice', 'Bob', 'Carol');
    const policy = makePolicy(message, { required: ['Carol'], optional: ['Bob', 'Alice'], threshold: 1 });
    expect(listed(policy, makeSent(message))).toEqual({
      threshold: 1,
      items: ['Alice Alice optional pending', 'Bob Bob optional pending', 'Carol Carol required pending'],
    });
  });

  it('pairs the rest in their order where they are as many', () => {
    const message = sentWith('Alice', 'Bob', 'Carol');
    const policy = makePolicy(message, { required: ['Dave', 'Bob'], optional: ['Eve'], threshold: 1 });
    expect(listed(makeSent(message), policy)).toEqual({
      threshold: 1,
      items: ['Alice Dave required pending', 'Bob Bob required pending', 'Carol Eve optional pending'],
    });
  });

  it('lists verifiers of the destination that nobody was paid for on the source', () => {
    const message = sentWith('Alice');
    const facts = [
      makeSent(message),
      makePolicy(message, { required: ['Dave', 'Alice'], optional: ['Eve'] }),
    ];
    expect(listed(...facts).items).toEqual([
      'Alice Alice required pending',
      '- Dave required pending',
      '- Eve optional pending',
    ]);
    const alice = makeVerifierCompleted(message, 'Alice');
    expect(foldFacts([...facts, alice])?.status).toBe('VERIFYING');
    const record = foldFacts([...facts, alice, makeVerifierCompleted(message, 'Dave')]);
    expect(record?.status).toBe('VERIFIED');
    expect(parseMessage(structuredClone(record))).toMatchObject({ ok: true, message: record });
  });

  it('guesses nothing where the rest are not as many', () => {
    const message = sentWith('Alice', 'Bob');
    const facts = [makeSent(message), makePolicy(message, { required: ['Dave'] })];
    expect(listed(...facts).items).toEqual([
      'Alice - optional pending',
      'Bob - optional pending',
      '- Dave required pending',
    ]);
    const sources = ['Alice', 'Bob'].map((name) => makeVerifierCompleted(message, name));
    expect(foldFacts([...facts, ...sources])?.status).toBe('VERIFYING');
    expect(foldFacts([...facts, makeVerifierCompleted(message, 'Dave')])?.status).toBe('VERIFIED');
  });

  it('matches completions by either address', () => {
    const message = sentWith('Alice', 'Bob');
    const policy = makePolicy(message, { required: ['Dave', 'Eve'] });
    const facts = [
      makeVerifierCompleted(message, 'Dave'),
      makeVerifierCompleted(message, 'Bob'),
      makeSent(message),
      policy,
    ];
    expect(listed(...facts).items).toEqual(['Alice Dave required done', 'Bob Eve required done']);
    expect(foldFacts(facts)?.status).toBe('VERIFIED');
  });

  it('is the latest word of the destination, which takes back no verification', () => {
    const message = sentWith('Alice', 'Bob');
    const early = makePolicy(message, { required: ['Alice'], optional: ['Bob'] }, 3200);
    const late = makePolicy(message, { required: ['Alice', 'Bob'] }, 3201);
    const facts = [makeSent(message), early, makeVerifierCompleted(message, 'Alice')];
    expect(foldFacts(facts)?.status).toBe('VERIFIED');
    expect(listed(...facts, late).items).toEqual(['Alice Alice required done', 'Bob Bob required pending']);
    expect(foldFacts([late, ...facts])?.status).toBe('VERIFIED');
    expect(foldFacts(facts.filter((fact) => fact !== early).concat(late))?.status).toBe('VERIFYING');
  });

  it('names nobody by the address of nobody, nor does a completion', () => {
    const message = sentWith('Alice');
    const policy = { ...makePolicy(message, { required: ['Alice'] }), optional: [nobody] };
    const completion = { ...makeVerifierCompleted(message, 'Alice'), verifier: nobody };
    expect(listed(makeSent(message), completion).items).toEqual(['Alice - required pending']);
    expect(listed(makeSent(message), policy, completion).items).toEqual(['Alice Alice required pending']);
  });

  it('adds to what a snapshot knows, and leaves its verifications', () => {
    const message = sentWith('Alice', 'Bob');
    const snapshot = makeMessage({
      version: '2.0.0',
      verifiers: {
        items: [makeVerifier('Alice', { completedAt: '2026-01-01T01:00:00.000Z' }), makeVerifier('Bob')],
        optionalThreshold: 0,
      },
    });
    const facts = [makeSent(message), makeSnapshot({ ...snapshot, status: 'VERIFYING' })];
    expect(listed(...facts).items).toEqual(['Alice Alice required done', 'Bob Bob required pending']);
    const policy = makePolicy(message, { required: ['Alice'], optional: ['Bob'] });
    expect(listed(...facts, policy).items).toEqual(['Alice Alice required done', 'Bob Bob optional pending']);
    expect(foldFacts([...facts, policy])?.status).toBe('VERIFIED');
  });

  it('bears on no status by itself, nor does the blessing of a root', () => {
    const message = sentWith('Alice');
    const facts = [makeSent(message), makePolicy(message, {}), makeRootBlessed(message, 1, 1)];
    const record = foldFacts(facts);
    expect(record?.status).toBe('SENT');
    expect(record && statusCause(record, facts)).toMatchObject({ blockNumber: message.sendBlockNumber });
  });
});

describe('what a status rests on', () => {
  const message = makeMessage();
  const cause = (...facts: readonly Fact[]) => {
    const record = foldFacts(facts);
    return record && statusCause(record, facts);
  };
  const placeOf = ({ seen: { network, blockNumber, transactionHash, at } }: Exclude<Fact, Snapshot>) => ({
    network,
    blockNumber,
    transactionHash,
    at,
  });

  it('is the fact that led to it', () => {
    const sent = makeSent(message);
    const commit = makeRange('Committed', message, 1, 1);
    const success = makeExecuted(message, true);
    expect(cause(sent)).toEqual(placeOf(sent));
    expect(cause(commit, sent)).toEqual(placeOf(commit));
    expect(cause(makeExecuted(message, false, 4999), success, commit, sent)).toEqual(placeOf(success));
  });

  it('is the last of several failures, and the first of several commits', () => {
    const last = makeExecuted(message, false, 5003);
    expect(cause(makeSent(message), last, makeExecuted(message, false, 5001))).toEqual(placeOf(last));
    const first = makeRange('Committed', message, 1, 1, 4001);
    expect(cause(makeSent(message), makeRange('Committed', message, 1, 2, 4002), first)).toEqual(
      placeOf(first),
    );
  });

  it('is the receipt of a snapshot that was executed, and the sending of one that was sent', () => {
    const executed = makeMessage({ status: 'SUCCESS' });
    expect(cause(makeSnapshot(executed))).toEqual({
      at: executed.receiptTimestamp,
      network: executed.destNetworkInfo.chainSelector,
      blockNumber: null,
      transactionHash: executed.receiptTransactionHash,
    });
    expect(cause(makeSnapshot(message))).toEqual({
      at: message.sendTimestamp,
      network: message.sourceNetworkInfo.chainSelector,
      blockNumber: message.sendBlockNumber,
      transactionHash: message.sendTransactionHash,
    });
    expect(cause(makeSnapshot(makeMessage({ status: 'BLESSED' })))).toBeNull();
  });
});

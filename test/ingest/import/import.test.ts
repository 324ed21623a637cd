import { describe, expect, it } from 'vitest';
import { importRecords } from '../../../src/ingest/import/import.ts';
import type { Store } from '../../../src/store/store.ts';
import { hashOf, makeMessage } from '../../fixtures.ts';
import { openStoreForTest } from '../mirror/running-mirror.ts';

const BATCH = 2_000;

async function* records(count: number): AsyncGenerator<Buffer> {
  for (let n = 0; n < count; n += 100) {
    const some = Array.from({ length: Math.min(100, count - n) }, (_, index) =>
      JSON.stringify(
        makeMessage({ messageId: hashOf(`import ${n + index}`), sequenceNumber: String(n + index + 1) }),
      ),
    );
    yield Buffer.from(`${some.join('\n')}\n`);
  }
}

/** The store, with a look at what it is asked to write. */
function watched(store: Store, before: (batch: number) => void) {
  const seen = { begun: 0, atOnce: 0, mostAtOnce: 0 };
  const apply: Store['apply'] = async (facts) => {
    seen.atOnce++;
    seen.mostAtOnce = Math.max(seen.mostAtOnce, seen.atOnce);
    try {
      before(++seen.begun);
      return await store.apply(facts);
    } finally {
      seen.atOnce--;
    }
  };
  return { seen, store: { apply } };
}

const reject = async () => undefined;

describe('an import', () => {
  it('rejects a record alone whose times or durations no message can have, and names the member', async () => {
    const store = await openStoreForTest();
    const lines = [
      makeMessage({ number: 1, status: 'SUCCESS' }),
      { ...makeMessage({ number: 2, status: 'SUCCESS' }), deliveryTime: 9_000_000_000_000_000 },
      { ...makeMessage({ number: 3 }), sendTimestamp: '9999-12-31T23:59:59.999Z' },
      makeMessage({ number: 4 }),
    ];
    const paths: string[][] = [];
    const report = await importRecords({
      input: (async function* () {
        yield Buffer.from(lines.map((line) => JSON.stringify(line)).join('\n'));
      })(),
      store,
      reject: async ({ problems }) => {
        paths.push(problems.map(({ path }) => path));
      },
    });
    expect(report).toMatchObject({ created: 2, rejected: 2 });
    expect(paths).toEqual([['$.deliveryTime'], ['$.sendTimestamp']]);
  });

  it('has one batch ready while another is being written, and no more', { tags: 'slow' }, async () => {
    const store = await openStoreForTest();
    const { seen, store: watchedStore } = watched(store, () => undefined);
    const report = await importRecords({ input: records(5 * BATCH + 1), store: watchedStore, reject });
    expect(report).toMatchObject({
      read: 5 * BATCH + 1,
      created: 5 * BATCH + 1,
      unchanged: 0,
      rejected: 0,
    });
    expect(seen).toEqual({ begun: 6, atOnce: 0, mostAtOnce: 2 });
    expect(await store.latestPosition()).toBe(String(5 * BATCH + 1));
  });

  it('that cannot write a batch says so, begins no other, and leaves none behind half way', {
    tags: 'slow',
  }, async () => {
    const store = await openStoreForTest();
    const { seen, store: failing } = watched(store, (batch) => {
      if (batch === 2) throw new Error('no space left');
    });
    const whole = importRecords({ input: records(10 * BATCH), store: failing, reject });
    await expect(whole).rejects.toThrow('no space left');
    expect(seen.atOnce).toBe(0);
    // The third may have been under way when the second was found to have failed.
    expect(seen.begun).toBeLessThanOrEqual(3);
    expect(await store.latestPosition()).toBe(String((seen.begun - 1) * BATCH));

    // What was not written is there once the same is imported again.
    const report = await importRecords({ input: records(10 * BATCH), store, reject });
    expect(report.created).toBe((11 - seen.begun) * BATCH);
    expect(await store.latestPosition()).toBe(String(10 * BATCH));
  });
});

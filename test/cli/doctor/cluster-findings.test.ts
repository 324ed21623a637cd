/** What `lanescan doctor` says of a cluster. That its figures are those of a real one is shown in test/cluster. */
import { describe, expect, it } from 'vitest';
import { clusterFindings } from '../../../src/cli/doctor/database-findings.ts';
import type { ClusterStatus, WorkerStatus } from '../../../src/store/cluster/workers.ts';

const worker = (differences: Partial<WorkerStatus> = {}): WorkerStatus => ({
  address: 'worker1:5432',
  isAway: false,
  shards: 2,
  bytes: 1_500_000_000,
  prepared: 0,
  wrongSettings: [],
  messageLocale: 'C.UTF-8',
  ...differences,
});

const findingsOf = (differences: Partial<ClusterStatus>) =>
  [
    ...clusterFindings({
      citusVersion: '13.2-1',
      workers: [worker(), worker({ address: 'worker2:5432' })],
      isPublished: true,
      messageLocale: 'en_US.UTF-8',
      ...differences,
    }),
  ].map(({ severity, what }) => `${severity}: ${what}`);

describe('the findings about a cluster', () => {
  const cluster = (shards: number) => `ok: Cluster: Citus 13.2-1, 2 workers, ${shards} shards of each table`;
  const second = 'ok: Worker worker2:5432: 2 shards, 1.5 GB';

  it('are none for one node', () => {
    expect([...clusterFindings(undefined)]).toEqual([]);
  });

  it('list the workers where all is well', () => {
    expect(findingsOf({})).toEqual([cluster(4), 'ok: Worker worker1:5432: 2 shards, 1.5 GB', second]);
  });

  it.each<[string, Partial<WorkerStatus>, string]>([
    [
      'a worker that is away',
      { isAway: true, bytes: null, prepared: null, messageLocale: null },
      'error: Worker worker1:5432: does not answer; searches fail, and nothing is written until it is back',
    ],
    [
      'settings that a worker lacks',
      { wrongSettings: ['jit', 'timezone'] },
      'warning: Worker worker1:5432: the database there lacks settings: jit, timezone',
    ],
    [
      'prepared transactions',
      { prepared: 1 },
      'ok: Worker worker1:5432: 2 shards, 1.5 GB, 1 prepared transaction',
    ],
  ])('tell %s', (_, differences, words) => {
    expect(findingsOf({ workers: [worker(differences), worker({ address: 'worker2:5432' })] })).toEqual([
      cluster(4),
      words,
      second,
    ]);
  });

  it('tell that the shards are not balanced', () => {
    expect(findingsOf({ workers: [worker({ shards: 7 }), worker({ shards: 3 })] })).toContain(
      'warning: Cluster: the shards are not balanced, from 3 to 7 on a worker',
    );
    const balanced = findingsOf({ workers: [worker({ shards: 2 }), worker({ shards: 1 })] });
    expect(balanced.join()).not.toContain('balanced');
  });

  it('tell that changes are not published, unless a worker that is away explains it', () => {
    const words = 'warning: Cluster: the latest changes are stored and not published yet';
    expect(findingsOf({ isPublished: false })).toContain(words);
    expect(findingsOf({ isPublished: false, workers: [worker({ isAway: true })] })).not.toContain(words);
  });

  it.each(['', 'C', 'C.UTF-8', 'POSIX', 'en_GB.UTF-8'])('accept messages of the locale "%s"', (locale) => {
    expect(findingsOf({ messageLocale: locale })).toHaveLength(3);
  });

  it('tell that a node speaks another language', () => {
    const consequence = 'so writers may end instead of waiting for a worker that is away';
    const words = (locale: string) =>
      `its messages are not in English (lc_messages = ${locale}), ${consequence}`;
    const [one, other] = [{ messageLocale: 'de_DE' }, { workers: [worker({ messageLocale: 'ca_ES' })] }];
    expect(findingsOf(one)).toContain(`warning: The coordinator: ${words('de_DE')}`);
    expect(findingsOf(other)).toContain(`warning: Worker worker1:5432: ${words('ca_ES')}`);
  });
});

/** Health checks for orchestrators (liveness and readiness), and metrics. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Store } from '../../store/store.ts';
import { indexingHealth, mirrorHealth } from '../metrics/indexing-health.ts';
import { json } from '../server/caching.ts';
import { DatabaseUnresponsiveError } from '../server/error-responses.ts';
import type { Route } from '../server/route.ts';
import { Health, Readiness } from './networks-schema.ts';

export const operationRoutes: readonly Route[] = [
  {
    path: '/healthz',
    isUnlimited: true,
    operationId: 'getHealth',
    tag: 'Operations',
    summary: 'Is the process alive?',
    description: 'Answers as long as the process runs, whatever the database does.',
    success: { description: 'The process is alive.', schema: Health },
    handle: () => json({ status: 'ok' }, 'never'),
  },
  {
    path: '/readyz',
    isUnlimited: true,
    operationId: 'getReadiness',
    tag: 'Operations',
    summary: 'Can it answer?',
    description:
      'Answers 200 when the database does, otherwise 503. `checks` has states that do not affect the status: ' +
      'while `indexing` is `stopped`, requests are answered but new messages and status changes are missing.',
    success: { description: 'The database answers.', schema: Readiness },
    async handle(_request, { store, feed }) {
      await store.ping().catch((cause) => {
        throw new DatabaseUnresponsiveError('The database does not answer', { cause });
      });
      const checks = { database: 'ok' as const, ...(await checkSources(store)), changes: feed.status };
      return json<Readiness>({ status: 'ready', simulated: store.simulated, checks }, 'never');
    },
  },
  {
    path: '/metrics',
    mediaTypes: ['text/plain'],
    operationId: 'getMetrics',
    tag: 'Operations',
    summary: 'Metrics for Prometheus',
    description:
      'Requests by route and status with their durations, the database’s connections and queries, messages by ' +
      'status, missing sequence numbers, how far each network is indexed, and the process itself. For operators; ' +
      'do not expose it to the public.',
    success: { description: 'The metrics, in the text format of Prometheus.' },
    handle: async (_request, { metrics }) => ({ body: await metrics.scrape(), freshness: 'never' }),
  },
];

/** Timeout of the checks in /readyz that do not decide whether the server is ready. */
const CHECK_TIMEOUT_MS = 1_000;

/** The worst state of indexing and of mirroring. Never rejects: a state that cannot be read in time is `unknown`. */
async function checkSources(store: Pick<Store, 'networkProgress' | 'mirrors'>) {
  const timeout = delay(CHECK_TIMEOUT_MS, undefined, { ref: false }).then(() => {
    throw new Error('timeout');
  });
  const worst = <T>(read: Promise<readonly T[]>, stateOf: (item: T) => Readiness['checks']['indexing']) =>
    Promise.race([read, timeout]).then(
      (items) => {
        const states = new Set(items.map(stateOf));
        return (['stopped', 'behind', 'ok'] as const).find((state) => states.has(state)) ?? 'not configured';
      },
      () => 'unknown' as const,
    );
  const [indexing, mirror] = await Promise.all([
    worst(store.networkProgress(), (network) => {
      const health = indexingHealth(network);
      return health === 'ok' || health === 'stopped' ? health : 'behind';
    }),
    worst(store.mirrors(), mirrorHealth),
  ]);
  return { indexing, mirror };
}

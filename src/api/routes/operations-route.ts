/** Health checks for orchestrators: liveness and readiness. */
import { rejectParameters } from '../../domain/filters/search-parameters.ts';
import { checkSources } from '../metrics/indexing-health.ts';
import { Health, Readiness } from '../schemas/operations-schema.ts';
import { DatabaseUnresponsiveError } from '../server/error-responses.ts';
import type { Route } from '../server/route.ts';

export const operationRoutes: readonly Route[] = [
  {
    path: '/healthz',
    mediaType: 'application/json',
    isUnlimited: true,
    operationId: 'getHealth',
    tag: 'Operations',
    summary: 'Is the process alive?',
    description: 'Answers as long as the process runs, whatever the database does.',
    success: { description: 'The process is alive.', schema: Health },
    errors: [],
    handle({ query }) {
      rejectParameters(query);
      return { body: '{"status":"ok"}', freshness: 'never' };
    },
  },
  {
    path: '/readyz',
    mediaType: 'application/json',
    isUnlimited: true,
    operationId: 'getReadiness',
    tag: 'Operations',
    summary: 'Can it answer?',
    description:
      'Answers 200 when the database does, otherwise 503. `checks` has states that do not affect the status: ' +
      'while `indexing` is `stopped`, requests are answered but new messages and status changes are missing.',
    success: { description: 'The database answers.', schema: Readiness },
    errors: [],
    async handle({ query }, { store, feed }) {
      rejectParameters(query);
      await store.ping().catch((cause) => {
        throw new DatabaseUnresponsiveError('The database does not answer', { cause });
      });
      const readiness: Readiness = {
        status: 'ready',
        simulated: store.simulated,
        checks: { database: 'ok', ...(await checkSources(store)), changes: feed.status },
      };
      return { body: JSON.stringify(readiness), freshness: 'never' };
    },
  },
];

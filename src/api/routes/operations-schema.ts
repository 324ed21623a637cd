/** Schemas of the health checks. */
import Type from 'typebox';
import { flag, oneOf, type ResponseBody } from './response-schema.ts';

const checkedStates = ['ok', 'behind', 'stopped', 'unknown', 'not configured'] as const;

export const Health = Type.Object({
  status: oneOf(['ok']),
});

export const Readiness = Type.Object({
  status: oneOf(['ready']),
  simulated: flag('True for simulated data (the demo).'),
  checks: Type.Object(
    {
      database: oneOf(['ok']),
      indexing: oneOf(checkedStates, 'The worst of the indexed networks.'),
      mirror: oneOf(checkedStates, 'The worst of the mirrored servers.'),
      changes: Type.Object(
        {
          feed: oneOf(
            ['idle', 'current', 'behind', 'unknown'],
            'Whether streams and waiting requests have all changes: `behind` for more than 5 s, `unknown` when the position of the database has been unknown for as long, `idle` without streams and waiting requests.',
          ),
          listener: oneOf(
            ['idle', 'connected', 'away'],
            'Whether notifications of changes arrive; without them the server polls every second.',
          ),
        },
        { description: 'Live push of changes by this process.' },
      ),
    },
    {
      description:
        'Results of the checks. `behind`: the data is older than it should be. `stopped`: the process is not alive. ' +
        '`unknown`: the state could not be read. `not configured`: not in use.',
    },
  ),
});

export type Readiness = ResponseBody<typeof Readiness>;

/** Schemas of the health checks. */
import Type from 'typebox';
import { checkedStates } from '../health-states.ts';
import { type Answer, oneOf } from './fields.ts';

export const Health = Type.Object({
  status: oneOf(['ok']),
});

export const Readiness = Type.Object({
  status: oneOf(['ready']),
  simulated: Type.Boolean({
    description: 'True where the data is the demo’s and no chain stands behind it.',
  }),
  checks: Type.Object(
    {
      database: oneOf(['ok']),
      indexing: oneOf(checkedStates, 'The worst of the indexed networks.'),
      mirror: oneOf(checkedStates, 'The worst of the mirrored servers.'),
      changes: Type.Object(
        {
          feed: oneOf(
            ['idle', 'current', 'behind', 'unknown'],
            'Whether streams and waiting requests have all changes: `behind` for more than 5 s, `unknown` where the database has not said for as long, `idle` while nobody follows.',
          ),
          listener: oneOf(
            ['idle', 'connected', 'away'],
            'Whether notifications of changes come; without them the server looks every second.',
          ),
        },
        { description: 'Live push of changes by this process.' },
      ),
    },
    {
      description:
        'What was looked at. `behind`: what is served is older than it should be. `stopped`: the process is not ' +
        'alive. `unknown`: it could not be read. `not configured`: there is none.',
    },
  ),
});

export type Readiness = Answer<typeof Readiness>;

/** Schema of the totals over all messages. */
import Type from 'typebox';
import { messageCounts, StatusCounts } from '../routes/lanes-schema.ts';
import { named } from '../routes/response-schema.ts';
import { count, decimal, type ResponseBody } from './fields.ts';

export const TOP_LANES = 10;

export const Stats = Type.Object({
  simulated: Type.Boolean({
    description: 'True for simulated data (the demo).',
  }),
  totals: Type.Object(messageCounts, { description: 'Over all time.' }),
  days: Type.Array(
    Type.Object({
      day: Type.String({ format: 'date', description: 'UTC.' }),
      messages: count('Messages sent on this day.'),
      byStatus: StatusCounts,
    }),
    { description: 'Every day of the window, oldest first; today is the last.' },
  ),
  topLanes: Type.Array(
    Type.Object({
      sourceNetworkInfo: named('NetworkInfo'),
      destNetworkInfo: named('NetworkInfo'),
      ...messageCounts,
    }),
    { description: `The ${TOP_LANES} busiest lanes of all time.` },
  ),
  position: decimal(
    'Position of the latest change that is counted: responses with the same position have the same numbers.',
  ),
});

export type Stats = ResponseBody<typeof Stats>;

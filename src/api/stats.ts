/** Totals over all messages, kept by every write: nothing is counted for an answer. */
import Type from 'typebox';
import { statuses } from '../domain/lifecycle.ts';
import { parseParameters, wholeNumber } from '../domain/search-parameters.ts';
import type { DayCounts } from '../store/lanes.ts';
import {
  DEFAULT_WINDOW_DAYS,
  dayOf,
  MAX_WINDOW_DAYS,
  messageCounts,
  StatusCounts,
  windowDaysParameter,
  windowStart,
} from './lanes.ts';
import type { Route } from './route.ts';
import { named } from './schema.ts';

const TOP_LANES = 10;

export const statsRoutes: readonly Route[] = [
  {
    path: '/v2/stats',
    aliases: ['/stats'],
    mediaType: 'application/json',
    operationId: 'getStats',
    tag: 'Networks',
    summary: 'Totals',
    description:
      'How many messages there are, by status and by the day (UTC) they were sent, and the busiest lanes. Kept up ' +
      'to date by every write, so that an answer costs the same however many messages there are.',
    queryParameters: [windowDaysParameter],
    success: {
      description: 'The totals.',
      schema: Type.Object({
        simulated: Type.Boolean({
          description: 'True where the data is the demo’s: no chain stands behind it.',
        }),
        totals: Type.Object(messageCounts, { description: 'Over all time.' }),
        days: Type.Array(
          Type.Object({
            day: Type.String({ format: 'date', description: 'UTC.' }),
            messages: Type.Integer({ minimum: 0, description: 'Messages sent on this day.' }),
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
        position: Type.String({
          pattern: '^[0-9]+$',
          description: 'Position of the latest change that is counted: the same position, the same numbers.',
        }),
      }),
    },
    errors: [400],
    async handle({ query }, { store }) {
      const { windowDays = DEFAULT_WINDOW_DAYS } = parseParameters(query, {
        windowDays: wholeNumber(1, MAX_WINDOW_DAYS),
      });
      const now = new Date();
      const first = windowStart(now, windowDays);
      const { position, all, topLanes, days } = await store.stats({
        topLanes: TOP_LANES,
        firstDay: first,
        lastDay: dayOf(now),
      });
      return {
        body: JSON.stringify({
          simulated: store.simulated,
          totals: all,
          days: everyDay(first, windowDays, days),
          topLanes: topLanes.map(({ sourceNetworkInfo, destNetworkInfo, counts }) => ({
            sourceNetworkInfo,
            destNetworkInfo,
            ...counts,
          })),
          position,
        }),
      };
    },
  },
];

/** A chart has no holes: a day without messages is a day of zeros. */
function everyDay(first: string, windowDays: number, counted: readonly DayCounts[]): DayCounts[] {
  const known = new Map(counted.map((day) => [day.day, day]));
  const none = Object.fromEntries(statuses.map((status) => [status, 0])) as DayCounts['byStatus'];
  return Array.from({ length: windowDays }, (_, index) => {
    const day = dayOf(new Date(Date.parse(first) + index * 86_400_000));
    return known.get(day) ?? { day, messages: 0, byStatus: none };
  });
}

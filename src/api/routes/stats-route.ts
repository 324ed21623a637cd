/** Totals over all messages, maintained by every write: nothing is counted at request time. */

import { wholeNumber } from '../../domain/filters/parameter-values.ts';
import { parseParameters } from '../../domain/filters/search-parameters.ts';
import { statuses } from '../../domain/lifecycle.ts';
import type { DayCounts } from '../../store/query/lanes.ts';
import { Stats, TOP_LANES } from '../schemas/stats-schema.ts';
import type { Route } from '../server/route.ts';
import {
  DEFAULT_WINDOW_DAYS,
  dayOf,
  MAX_WINDOW_DAYS,
  windowDaysParameter,
  windowStart,
} from './lanes-route.ts';

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
      'to date by every write, so that a response costs the same however many messages there are.',
    queryParameters: [windowDaysParameter],
    success: {
      description: 'The totals.',
      schema: Stats,
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
      const stats: Stats = {
        simulated: store.simulated,
        totals: all,
        days: everyDay(first, windowDays, days),
        topLanes: topLanes.map(({ sourceNetworkInfo, destNetworkInfo, counts }) => ({
          sourceNetworkInfo,
          destNetworkInfo,
          ...counts,
        })),
        position,
      };
      return { body: JSON.stringify(stats) };
    },
  },
];

/** Fills days without messages with zeros. */
function everyDay(first: string, windowDays: number, counted: readonly DayCounts[]): DayCounts[] {
  const known = new Map(counted.map((day) => [day.day, day]));
  const none = Object.fromEntries(statuses.map((status) => [status, 0])) as DayCounts['byStatus'];
  return Array.from({ length: windowDays }, (_, index) => {
    const day = dayOf(new Date(Date.parse(first) + index * 86_400_000));
    return known.get(day) ?? { day, messages: 0, byStatus: none };
  });
}

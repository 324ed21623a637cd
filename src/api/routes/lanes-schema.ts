/** Schemas of lanes (counts of messages, delivery times, completeness of sequence numbers) and of the totals. */
import Type from 'typebox';
import { MAX_OVERDUE } from '../../domain/delivery-times.ts';
import { type Status, statuses } from '../../domain/lifecycle.ts';
import {
  count,
  dateTime,
  decimal,
  flag,
  list,
  named,
  orNull,
  type ResponseBody,
  text,
} from './response-schema.ts';

/** A list names at most this many missing ranges for each on-ramp; `missingRangeCount` is the full number. */
export const NAMED_RANGES = 100;

export const StatusCounts = Type.Object(
  Object.fromEntries(statuses.map((status) => [status, Type.Integer({ minimum: 0 })])) as Record<
    Status,
    Type.TInteger
  >,
  { description: 'Messages in each status.' },
);

export const messageCounts = {
  messages: count('Messages in all.'),
  byStatus: StatusCounts,
  inFlight: count('Sent, and neither FAILED nor SUCCESS yet.'),
  readyForManualExecution: count('Ready for manual execution.'),
};

export const laneEnds = {
  sourceNetworkInfo: named('NetworkInfo'),
  destNetworkInfo: named('NetworkInfo'),
  routerAddress: orNull(text('Router on the source chain; null where it is unknown.')),
};

export const Completeness = Type.Object({
  first: decimal('Lowest sequence number that is present.'),
  last: decimal('Highest sequence number that is present.'),
  present: decimal('How many are present.'),
  missing: decimal('How many are missing between `first` and `last`.'),
  missingRangeCount: count('Number of missing ranges.'),
  missingRanges: list(
    Type.Object({ from: decimal('First missing number.'), to: decimal('Last missing number, included.') }),
    `The missing ranges, lowest first; at most ${NAMED_RANGES} are named.`,
  ),
  isComplete: flag('Whether nothing is missing between `first` and `last`.'),
});

export const Delivery = Type.Object(
  {
    windowDays: count('Days (UTC, today included) whose messages count.'),
    messages: count('Successful deliveries in the window.'),
    p50Ms: orNull(count('Half were delivered within this time.')),
    p90Ms: orNull(count('90 of 100 were.')),
    p99Ms: orNull(count('99 of 100 were.')),
  },
  {
    description: 'Time from sending to successful execution, exact to 5 per cent; null without a delivery.',
  },
);

export const Lane = Type.Object({
  ...laneEnds,
  version: orNull(text('Protocol version of the on-ramp that was used last.')),
  ...messageCounts,
  overdue: orNull(
    count(
      'In flight for longer than the p99 of `delivery`, ' +
        `counted up to ${MAX_OVERDUE}; null where the window has no delivery to compare with.`,
    ),
  ),
  lastSentAt: dateTime('When the newest message was sent.'),
  delivery: Delivery,
  onramps: list(
    Type.Object({
      onramp: text('On-ramp contract on the source chain.'),
      version: orNull(text('Its protocol version.')),
      completeness: Completeness,
    }),
    'Each on-ramp has its own sequence numbers. The one that was used last comes first.',
  ),
});

export const LaneList = Type.Object({
  data: Type.Array(Lane),
  total: count('Number of lanes that match, listed or not.'),
});

export const LaneLatency = Type.Object({
  lane: Type.Object(laneEnds),
  totalMs: count('Time from sending to execution, in milliseconds.'),
});

export type StatusCounts = ResponseBody<typeof StatusCounts>;
export type Completeness = ResponseBody<typeof Completeness>;
export type Delivery = ResponseBody<typeof Delivery>;
export type Lane = ResponseBody<typeof Lane>;
export type LaneList = ResponseBody<typeof LaneList>;
export type LaneLatency = ResponseBody<typeof LaneLatency>;

export const TOP_LANES = 10;

export const Stats = Type.Object({
  simulated: flag('True for simulated data (the demo).'),
  totals: Type.Object(messageCounts, { description: 'Over all time.' }),
  days: list(
    Type.Object({
      day: Type.String({ format: 'date', description: 'UTC.' }),
      messages: count('Messages sent on this day.'),
      byStatus: StatusCounts,
    }),
    'Every day of the window, oldest first; today is the last.',
  ),
  topLanes: list(
    Type.Object({
      sourceNetworkInfo: named('NetworkInfo'),
      destNetworkInfo: named('NetworkInfo'),
      ...messageCounts,
    }),
    `The ${TOP_LANES} busiest lanes of all time.`,
  ),
  position: decimal(
    'Position of the latest change that is counted: responses with the same position have the same numbers.',
  ),
});

export type Stats = ResponseBody<typeof Stats>;

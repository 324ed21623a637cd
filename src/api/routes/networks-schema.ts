/** Schemas of lanes and totals, of networks (traffic, how far they are indexed, mirrors), and of the health checks. */
import Type from 'typebox';
import { MAX_OVERDUE } from '../../domain/delivery-times.ts';
import { type Status, statuses } from '../../domain/lifecycle.ts';
import { findingKindNames } from '../../domain/networks/index-findings.ts';
import { problemKinds } from '../../domain/networks/indexing-problem.ts';
import { NetworkInfo } from '../../domain/records/message-schema.ts';
import * as bounds from '../metrics/indexing-health.ts';
import {
  count,
  dateTime,
  daysOfWindow,
  decimal,
  flag,
  laneNetworks,
  list,
  oneOf,
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
  ...laneNetworks,
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
  days: daysOfWindow({ byStatus: StatusCounts }),
  topLanes: list(
    Type.Object({ ...laneNetworks, ...messageCounts }),
    `The ${TOP_LANES} busiest lanes of all time.`,
  ),
  position: decimal(
    'Position of the latest change that is counted: responses with the same position have the same numbers.',
  ),
});

export type Stats = ResponseBody<typeof Stats>;

export const Indexing = Type.Object(
  {
    headBlock: orNull(count('Newest block that the endpoints have reported.')),
    finalizedBlock: orNull(count('Newest block that is final.')),
    indexedBlock: orNull(
      count(
        'Newest block that was read. New blocks are read first; `owedBlocks` counts older ones that are still to be read.',
      ),
    ),
    startBlock: orNull(count('First block of the configured history; null while it is being searched.')),
    owedBlocks: count('Blocks of the history that are still to be read.'),
    failedRanges: count('Ranges of blocks that could not be read and are tried again.'),
    failedBlocks: count('Blocks in those ranges.'),
    oldestFailureAt: orNull(dateTime('When the oldest of those ranges failed first.')),
    unreadableLogs: count('Logs of trusted contracts that could not be decoded; they are stored.'),
    foreignLogs: count('Logs of contracts that no configured router registered; they are ignored.'),
    lagBlocks: orNull(count('Blocks between the head and the indexed one.')),
    lagSeconds: orNull(
      count('Age of the newest block that was read, in seconds: it grows while nothing is read.'),
    ),
    isIndexed: flag('Whether an indexer works on the network now.'),
    lastSeenAt: dateTime('When an indexer was last alive.'),
    health: oneOf(
      bounds.indexingHealths,
      `\`stopped\`: no indexer has been alive for ${bounds.STOPPED_AFTER_SECONDS} seconds; new messages and status changes are missing. ` +
        `\`failing\`: there is a problem, blocks could not be read for ${bounds.FAILING_AFTER_SECONDS} seconds, or a finding is a loss. ` +
        `\`stale\`: an indexer is alive but recorded no progress for ${bounds.STALE_AFTER_SECONDS} seconds. ` +
        `\`lagging\`: more than ${bounds.LAGGING_AFTER_SECONDS} seconds behind the head (where block times are not ` +
        `known, ${bounds.LAGGING_AFTER_BLOCKS} blocks), or the newest block is older than ${bounds.OLD_BLOCK_SECONDS} seconds. ` +
        '`ok`: none of these. The first that applies.',
    ),
    updatedAt: dateTime('When the progress was recorded.'),
    problem: orNull(text('Why indexing does not progress, in a sentence; null while it does.')),
    problemKind: orNull(oneOf(problemKinds, 'The kind of that problem.')),
    findings: list(
      Type.Object({
        kind: oneOf(findingKindNames, 'What was found.'),
        text: text('The same in a sentence.'),
        isLoss: flag('Whether messages or statuses are missing because of it.'),
        count: count('How many contracts, lanes or blocks it was found for.'),
      }),
      'Open findings about completeness: where the history that was read contradicts what the contracts of the ' +
        'network say, and contracts that are not known. Empty where there are none.',
    ),
  },
  { description: 'How far the network is indexed.' },
);

export const Mirror = Type.Object({
  health: oneOf(
    bounds.mirrorHealths,
    '`stopped`: the process that follows the server is not alive. `behind`: the server could not be read to its ' +
      'newest message for some time. `ok`: neither.',
  ),
  lastSeenAt: dateTime('When the process was last alive.'),
  currentAt: orNull(dateTime('When the server was last read to its newest message.')),
});

export const Network = Type.Object({
  ...NetworkInfo.properties,
  blockExplorer: orNull(
    text('Website of a block explorer; null where none is known, and for simulated data.'),
  ),
  explorerUrls: orNull(
    Type.Object({
      transaction: orNull(text('Of a transaction hash.')),
      address: orNull(text('Of an account or contract.')),
      block: orNull(text('Of a block number, slot or checkpoint.')),
      token: orNull(text('Of a token.')),
    }),
    'URLs of pages of the block explorer; put the value, URL-encoded, in the place of `{}`.',
  ),
  sent: count('Messages from this network.'),
  received: count('Messages to this network.'),
  indexing: Type.Union([
    Indexing,
    Type.Null({ description: 'Not indexed: its records come from imports only.' }),
  ]),
});

export const NetworkList = Type.Object({
  simulated: flag('True for simulated data (the demo).'),
  lastChangeAt: orNull(dateTime('When the latest change of a message was recorded, from any source.')),
  mirrors: list(Mirror, 'Other servers that are mirrored.'),
  data: Type.Array(Network),
});

export type Indexing = ResponseBody<typeof Indexing>;
export type Mirror = ResponseBody<typeof Mirror>;
export type Network = ResponseBody<typeof Network>;
export type NetworkList = ResponseBody<typeof NetworkList>;

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

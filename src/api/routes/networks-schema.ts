/** Schemas of networks: their traffic, how far they are indexed, and the mirrored servers. */
import Type from 'typebox';
import { findingKindNames } from '../../domain/networks/index-findings.ts';
import { problemKinds } from '../../domain/networks/indexing-problem.ts';
import { NetworkInfo } from '../../domain/records/message-schema.ts';
import {
  FAILING_AFTER_SECONDS,
  indexingHealths,
  LAGGING_AFTER_BLOCKS,
  LAGGING_AFTER_SECONDS,
  mirrorHealths,
  OLD_BLOCK_SECONDS,
  STALE_AFTER_SECONDS,
  STOPPED_AFTER_SECONDS,
} from '../metrics/indexing-health.ts';
import { count, dateTime, flag, list, oneOf, orNull, type ResponseBody, text } from './response-schema.ts';

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
      indexingHealths,
      `\`stopped\`: no indexer has been alive for ${STOPPED_AFTER_SECONDS} seconds; new messages and status changes are missing. ` +
        `\`failing\`: there is a problem, blocks could not be read for ${FAILING_AFTER_SECONDS} seconds, or a finding is a loss. ` +
        `\`stale\`: an indexer is alive but recorded no progress for ${STALE_AFTER_SECONDS} seconds. ` +
        `\`lagging\`: more than ${LAGGING_AFTER_SECONDS} seconds behind the head (where block times are not ` +
        `known, ${LAGGING_AFTER_BLOCKS} blocks), or the newest block is older than ${OLD_BLOCK_SECONDS} seconds. ` +
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
    mirrorHealths,
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

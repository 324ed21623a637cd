/**
 * The closed list of problems that indexing a network can have, with a sentence for visitors.
 *
 * The operator's own text names hosts and repeats what nodes say; it goes to logs and to `doctor`, never over HTTP.
 */

export const problemSentences = {
  unreachable: 'An endpoint of this network cannot be reached.',
  denied: 'An endpoint of this network refuses access.',
  'rate-limited': 'An endpoint of this network limits the rate of requests.',
  'range-refused': 'An endpoint of this network refuses the ranges of blocks that are asked for.',
  refused: 'An endpoint of this network refuses a request.',
  slow: 'An endpoint of this network does not answer in time.',
  behind: 'An endpoint of this network lags behind the chain.',
  'history-missing': 'An endpoint of this network does not have the history that is asked for.',
  'wrong-chain': 'An endpoint belongs to another chain.',
  'bad-answer': 'An endpoint of this network gives wrong or incomplete answers.',
  reorganization: 'The chain replaced blocks that were final; they are being read again.',
  configuration: 'The configuration of this network does not match its chain.',
  internal: 'The indexer met an error of its own; the operator’s log says which.',
  unknown: 'There is a problem with an endpoint; the operator’s log says which.',
} as const;

export type ProblemKind = keyof typeof problemSentences;

export const problemKinds = Object.keys(problemSentences) as readonly ProblemKind[];

/** Problems that do not pass until the operator changes something. */
export const operatorProblems: ReadonlySet<ProblemKind> = new Set(['denied', 'wrong-chain', 'configuration']);

/** A stored kind; `unknown` where another version wrote one that is not on the list, or none. */
export function problemKindOf(stored: string | null): ProblemKind {
  return problemKinds.find((kind) => kind === stored) ?? 'unknown';
}

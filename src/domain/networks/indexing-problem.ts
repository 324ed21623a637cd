/**
 * The closed list of problems of indexing a network, with a sentence for visitors.
 *
 * The text for the operator names hosts and quotes nodes; it goes to logs and to `doctor`, never over HTTP.
 */

export const problemSentences = {
  unreachable: 'An endpoint of this network cannot be reached.',
  denied: 'An endpoint of this network denies access.',
  'rate-limited': 'An endpoint of this network limits the rate of requests.',
  'range-refused': 'An endpoint of this network rejects the requested block ranges.',
  refused: 'An endpoint of this network rejects a request.',
  slow: 'An endpoint of this network does not answer in time.',
  behind: 'An endpoint of this network lags behind the chain.',
  'history-missing': 'An endpoint of this network does not have the requested history.',
  'wrong-chain': 'An endpoint belongs to another chain.',
  'bad-answer': 'An endpoint of this network gives wrong or incomplete answers.',
  reorganization: 'An endpoint of this network lacks blocks that were final; no other one confirms that yet.',
  configuration: 'The configuration of this network does not match its chain.',
  internal: 'The indexer has an internal error; see the operator’s log.',
  unknown: 'There is a problem with an endpoint; see the operator’s log.',
} as const;

export type ProblemKind = keyof typeof problemSentences;

export const problemKinds = Object.keys(problemSentences) as readonly ProblemKind[];

/** Problems that do not pass until the operator changes something. */
export const operatorProblems: ReadonlySet<ProblemKind> = new Set([
  'denied',
  'wrong-chain',
  'configuration',
  'reorganization',
]);

/** A stored kind; `unknown` where it is missing, or was written by another version and is not on the list. */
export function problemKindOf(stored: string | null): ProblemKind {
  return problemKinds.find((kind) => kind === stored) ?? 'unknown';
}

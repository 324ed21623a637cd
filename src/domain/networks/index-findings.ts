/**
 * The closed list of findings about the completeness of an indexed network, with a sentence for visitors.
 *
 * The operator's own text names contracts, numbers and hosts; it goes to logs, `doctor` and `audit`, never over HTTP.
 */

interface FindingKindFacts {
  readonly sentence: string;
  /** Whether records lack messages or changes of status because of it, or have some that are false. */
  readonly isLoss: boolean;
}

export const findingKinds = {
  'registrations-missing': {
    sentence: 'The history of a router lacks the events that registered contracts which it names now.',
    isLoss: true,
  },
  'messages-missing': {
    sentence: 'An on-ramp has counted more messages than were found in its history.',
    isLoss: true,
  },
  'commits-missing': {
    sentence: 'An off-ramp has counted more committed messages than were found in its history.',
    isLoss: true,
  },
  'executions-missing': {
    sentence: 'An off-ramp has executed messages whose execution was not found in its history.',
    isLoss: true,
  },
  'onramp-unknown': {
    sentence: 'Messages of an on-ramp were committed elsewhere, and no router here has registered it.',
    isLoss: true,
  },
  'contract-unknown': {
    sentence: 'A router has registered a contract that this version does not know.',
    isLoss: true,
  },
  'contract-disputed': {
    sentence:
      'Endpoints of this network disagree on a contract that a router has registered; they are asked again.',
    isLoss: false,
  },
  'messages-invented': {
    sentence: 'Messages are recorded that their on-ramp has not counted; their blocks are read again.',
    isLoss: true,
  },
  'commits-invented': {
    sentence: 'Commits are recorded that their off-ramp has not counted; their blocks are read again.',
    isLoss: true,
  },
  'events-unconfirmed': {
    sentence:
      'Some events of this network were shown by one endpoint alone; they are reviewed when others answer.',
    isLoss: false,
  },
  'logs-unreadable': {
    sentence: 'Events of this network could not be decoded; they are kept and read again at every start.',
    isLoss: false,
  },
  'bloom-wrong': {
    sentence: 'The bloom filters of this network’s blocks contradict its logs and are not used.',
    isLoss: false,
  },
} as const satisfies Record<string, FindingKindFacts>;

export type FindingKind = keyof typeof findingKinds;

export const findingKindNames = Object.keys(findingKinds) as readonly FindingKind[];

/** A stored kind; undefined where a later version wrote one that is not on the list. */
export function findingKindOf(stored: string): FindingKind | undefined {
  return findingKindNames.find((kind) => kind === stored);
}

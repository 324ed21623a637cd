/**
 * The closed list of findings about the completeness of an indexed network, with a sentence for visitors.
 *
 * The operator's own text names contracts, numbers and hosts; it goes to logs, `doctor` and `audit`, never over HTTP.
 */

const sentences = {
  'registrations-missing':
    'The history of a router lacks the events that registered contracts which it names now.',
  'messages-missing': 'An on-ramp has counted more messages than were found in its history.',
  'commits-missing': 'An off-ramp has counted more committed messages than were found in its history.',
  'executions-missing': 'An off-ramp has executed messages whose execution was not found in its history.',
  'onramp-unknown': 'Messages of an on-ramp were committed elsewhere, and no router here has registered it.',
  'contract-unknown': 'A router has registered a contract that this version does not know.',
  'contract-disputed':
    'Endpoints of this network disagree on a contract that a router has registered; they are asked again.',
  'messages-invented':
    'Messages are recorded that their on-ramp has not counted; their blocks are read again.',
  'commits-invented':
    'Commits are recorded that their off-ramp has not counted; their blocks are read again.',
  'events-unconfirmed':
    'Some events of this network were shown by one endpoint alone; they are reviewed when others answer.',
  'logs-unreadable':
    'Events of this network could not be decoded; they are kept and read again at every start.',
  'bloom-wrong': 'The bloom filters of this network’s blocks contradict its logs and are not used.',
};

export type FindingKind = keyof typeof sentences;

export const findingKindNames = Object.keys(sentences) as readonly FindingKind[];

const harmless: readonly FindingKind[] = [
  'contract-disputed',
  'events-unconfirmed',
  'logs-unreadable',
  'bloom-wrong',
];

/** `isLoss`: whether records lack messages or changes of status because of it, or have some that are false. */
export const findingKinds = Object.fromEntries(
  findingKindNames.map((kind) => [kind, { sentence: sentences[kind], isLoss: !harmless.includes(kind) }]),
) as Readonly<Record<FindingKind, { readonly sentence: string; readonly isLoss: boolean }>>;

/** A stored kind; undefined where a later version wrote one that is not on the list. */
export function findingKindOf(stored: string): FindingKind | undefined {
  return findingKindNames.find((kind) => kind === stored);
}

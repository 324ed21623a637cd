/** Groups of reasons: failed messages that failed for the same cause, whatever the figures in their errors. */
import type { Fixer } from './explanations.ts';
import type { GroupedReason } from './failure-reason.ts';

export interface ReasonGroup {
  /** The same exactly for reasons of the same group. */
  readonly key: string;
  /** As in the reason; `not-known` where nothing was returned to us. */
  readonly code: string;
  /** What happened, without the figures of a single message. It may quote untrusted contracts. */
  readonly title: string;
  readonly fixableBy: Fixer;
}

/** Without return data: imported and mirrored messages, and those of chains that do not report it. */
const notKnown: ReasonGroup = {
  key: 'not-known',
  code: 'not-known',
  title: 'The reason is not known here',
  fixableBy: 'unknown',
};

const MAX_TITLE_LENGTH = 160;

export function reasonGroup(reason: GroupedReason | null): ReasonGroup {
  if (!reason) return notKnown;
  const { code, saidBy, fixableBy } = reason;
  const { title, detail } = reason.group;
  return {
    key: `${code} ${saidBy} ${fixableBy} ${detail}`,
    code,
    title: title.length > MAX_TITLE_LENGTH ? `${title.slice(0, MAX_TITLE_LENGTH - 1)}…` : title,
    fixableBy,
  };
}

/** The sign and colour of each status on a terminal. */
import type { Status } from '../../domain/lifecycle.ts';
import type { Colour } from './terminal-text.ts';

/** Each status has its own sign, so that colour is never the only difference. */
export const statusSigns: Record<Status, { readonly glyph: string; readonly colour: Colour }> = {
  SENT: { glyph: '○', colour: 'blue' },
  SOURCE_FINALIZED: { glyph: '◔', colour: 'blue' },
  COMMITTED: { glyph: '◑', colour: 'cyan' },
  BLESSED: { glyph: '◕', colour: 'cyan' },
  VERIFYING: { glyph: '◑', colour: 'cyan' },
  VERIFIED: { glyph: '◕', colour: 'cyan' },
  FAILED: { glyph: '✗', colour: 'red' },
  SUCCESS: { glyph: '✓', colour: 'green' },
};

export function signedStatus(status: Status): string {
  return `${statusSigns[status].glyph} ${status}`;
}

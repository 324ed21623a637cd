/** Texts and signs for messages that all commands share. */
import type { Status } from '../../domain/lifecycle.ts';
import type { Message, NetworkInfo } from '../../domain/message.ts';
import { type Colour, printable } from './terminal-text.ts';

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

export function statusWords(status: Status): string {
  return `${statusSigns[status].glyph} ${status}`;
}

export function networkName({ displayName, name }: NetworkInfo): string {
  return printable(displayName?.trim() || name);
}

export function laneWords({ sourceNetworkInfo, destNetworkInfo }: Message): string {
  return `${networkName(sourceNetworkInfo)} → ${networkName(destNetworkInfo)}`;
}

export const SIMULATED_NOTICE = 'The data is SIMULATED: no message exists on a chain.';

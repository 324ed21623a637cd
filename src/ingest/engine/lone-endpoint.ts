/** When one of several endpoints is believed alone: only after none of the others could be asked for a while. */
import type { NoticeLevel } from '../../base/notice.ts';

/** An endpoint whose head is older, in milliseconds, does not know what the chain has now. */
const MAX_HEAD_AGE_MS = 600_000;

export interface LoneEndpoint {
  /** Called when no other endpoint can be asked. Whether this one is believed alone by now. */
  isBelieved(name: string): boolean;
  /** Called when another endpoint has answered. */
  wasAsked(): void;
}

/** @param patienceMs how long one is not believed alone */
export function createLoneEndpoint(
  patienceMs: number,
  notice: (line: string, level?: NoticeLevel) => void,
): LoneEndpoint {
  /** On performance.now()'s clock; null while another endpoint can be asked. */
  let since: number | null = null;
  let isSaid = false;
  return {
    isBelieved(name) {
      since ??= performance.now();
      if (performance.now() - since < patienceMs) return false;
      if (!isSaid)
        notice(`No second endpoint can be asked: ${name} is believed alone until one answers`, 'warn');
      isSaid = true;
      return true;
    },
    wasAsked() {
      if (isSaid) notice('A second endpoint answers again');
      since = null;
      isSaid = false;
    },
  };
}

export function isOldHead({ timestamp }: { readonly timestamp: number }): boolean {
  return Date.now() - timestamp * 1000 > MAX_HEAD_AGE_MS;
}

/** Parts of a sentence: times that keep up with the clock, addresses that lead to their messages, reasons of failures. */
import { Link } from '@tanstack/react-router';
import type { FailureReason } from '../../../src/client/api-types.ts';
import { addressBytes } from '../../../src/domain/addresses.ts';
import type { NetworkInfo } from '../../../src/domain/message.ts';
import { reasonInUnits, reasonToken } from '../../../src/domain/names/message-names.ts';
import { age, exactTime, printable } from '../../../src/text/format.ts';
import { useTimed } from '../server/clock.ts';
import { useNames } from '../server/names.ts';

/** How long ago, kept up to date; the exact time on hover. */
export function Ago({ at, suffix = '' }: { readonly at: string; readonly suffix?: string }) {
  const text = useTimed((now) => (now - Date.parse(at) < 1_000 ? 'now' : age(now - Date.parse(at))));
  return (
    <time dateTime={at} title={exactTime(at)}>
      {text}
      {text === 'now' ? '' : suffix}
    </time>
  );
}

export function ExactTime({ at }: { readonly at: string }) {
  return (
    <span>
      <time dateTime={at}>{exactTime(at)}</time>{' '}
      <span className="muted">
        (<Ago at={at} suffix=" ago" />)
      </span>
    </span>
  );
}

const ADDRESS = /(\b0x[0-9a-fA-F]{40}\b|\b[1-9A-HJ-NP-Za-km-z]{32,44}\b)/;

/**
 * Text in which each address leads to the search for it.
 *
 * @param text already printable
 */
export function AddressText({ text }: { readonly text: string }) {
  return text.split(ADDRESS).map((part, index) => {
    // Every second part is what the expression found.
    if (index % 2 === 0 || addressBytes(part).length === 0) return part;
    const title = `Search messages with ${part}`;
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts of a text have no other key.
      <Link key={index} to="/" search={{ q: part }} className="address-link" title={title}>
        {part}
      </Link>
    );
  });
}

interface ReasonTextProps {
  readonly reason: FailureReason;
  /** The destination. */
  readonly network: NetworkInfo;
}

/** The sentence of a reason, its amounts in units that people use. */
export function ReasonText({ reason, network }: ReasonTextProps) {
  const token = reasonToken(reason);
  const names = useNames(token === undefined ? [] : [token]);
  return (
    <span title={token === undefined ? undefined : printable(reason.text)}>
      <AddressText text={printable(reasonInUnits(reason, network, names))} />
    </span>
  );
}

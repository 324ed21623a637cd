/** Ids, hashes and addresses with a copy button: short in lists, whole on pages. */
import { Link } from '@tanstack/react-router';
import type { Filters } from '../server/search-view.ts';
import { CopyButton } from './copy-button.tsx';
import { shortHash } from './format.ts';

export function ShortHash({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <span className="hash">
      <code title={text}>{shortHash(text)}</code>
      <CopyButton text={text} what={what} />
    </span>
  );
}

/** A whole hash, linked to the search for it. */
export function SearchableHash({
  text,
  what,
  filter = 'q',
}: {
  readonly text: string;
  readonly what: string;
  readonly filter?: keyof Filters;
}) {
  return (
    <span className="hash whole">
      <Link to="/" search={{ [filter]: text }} title={`Search messages with this ${what}`}>
        <code>{text}</code>
      </Link>
      <CopyButton text={text} what={what} />
    </span>
  );
}

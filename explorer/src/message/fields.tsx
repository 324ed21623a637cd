/** The fields of a card, with a name each. */
import type { ReactNode } from 'react';
import type { NetworkInfo } from '../../../src/domain/message.ts';
import { CopyButton } from '../parts/copy.tsx';
import { SearchableHash, type SearchableHashProps } from '../parts/hash.tsx';

/** Values by name; those that are null or false are left out. */
export function Fields({ values }: { readonly values: Readonly<Record<string, ReactNode>> }) {
  return (
    <dl className="fields stack">
      {Object.entries(values).map(([name, value]) =>
        value === null || value === false ? null : (
          <div key={name} className="field-row">
            <dt className="muted">{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

/** The value of a field that can be searched for; null where there is none. */
export function hash(
  text: string | null | undefined,
  what: string,
  network: NetworkInfo,
  options: Omit<SearchableHashProps, 'text' | 'what' | 'network'> = {},
): ReactNode {
  return text ? <SearchableHash text={text} what={what} network={network} {...options} /> : null;
}

export const muted = (words: ReactNode) => <span className="muted">{words}</span>;

interface CopyableProps {
  readonly text: string;
  readonly what: string;
  readonly shown?: string;
}

/** A value with a copy button. */
export function Copyable({ text, what, shown = text }: CopyableProps) {
  return (
    <span className="hash whole inline gap-2">
      {shown === text ? <code className="wrap">{text}</code> : <span>{shown}</span>}
      <CopyButton text={text} what={what} />
    </span>
  );
}

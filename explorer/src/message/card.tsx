/** A card with a title, and fields with a name each. */
import type { ReactNode } from 'react';
import { CopyButton } from '../parts/copy.tsx';
import { SearchableHash, type SearchableHashProps } from '../parts/hash.tsx';

interface CardProps {
  readonly title: string;
  readonly about?: ReactNode;
  readonly wide?: boolean;
  readonly children: ReactNode;
}

export function Card({ title, about, wide = false, children }: CardProps) {
  return (
    <section className={`card${wide ? ' card-wide' : ''}`}>
      <header className="card-head">
        <h2>{title}</h2>
        {about !== undefined && <div className="card-about">{about}</div>}
      </header>
      {children}
    </section>
  );
}

export function Fields({ children }: { readonly children: ReactNode }) {
  return <dl className="fields">{children}</dl>;
}

export function Field({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div className="field-row">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

interface HashFieldProps extends Omit<SearchableHashProps, 'text' | 'what'> {
  readonly name: string;
  /** Nothing is shown where there is none, unless it is said what to show. */
  readonly text: string | null | undefined;
  readonly none?: string;
  /** By default its name. */
  readonly what?: string;
  /** In front of the hash. */
  readonly children?: ReactNode;
}

/** A field whose value can be searched for. */
export function HashField({
  name,
  text,
  none,
  what = name.toLowerCase(),
  children,
  ...rest
}: HashFieldProps) {
  if (text === null || text === undefined)
    return none === undefined ? null : <Field name={name}>{<span className="muted">{none}</span>}</Field>;
  return (
    <Field name={name}>
      {children}
      <SearchableHash text={text} what={what} {...rest} />
    </Field>
  );
}

/** A value with a copy button. */
export function Copyable({
  text,
  what,
  shown = text,
}: {
  readonly text: string;
  readonly what: string;
  readonly shown?: string;
}) {
  return (
    <span className="hash whole">
      {shown === text ? <code>{text}</code> : <span>{shown}</span>}
      <CopyButton text={text} what={what} />
    </span>
  );
}

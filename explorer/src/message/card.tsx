/** A card with a title, and fields with a name each. */
import type { ReactNode } from 'react';
import { CopyButton } from '../parts/copy-button.tsx';

export function Card({
  title,
  about,
  wide = false,
  children,
}: {
  readonly title: string;
  readonly about?: ReactNode;
  readonly wide?: boolean;
  readonly children: ReactNode;
}) {
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

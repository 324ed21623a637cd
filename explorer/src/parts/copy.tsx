/** Copy buttons, and code with one. */
import { useEffect, useRef, useState } from 'react';
import { Icon } from './icons.tsx';

const SHOWN_FOR_MS = 1_500;

interface CopyButtonProps {
  /** A function where the text is expensive to compute. */
  readonly text: string | (() => string);
  /** What is copied, for screen readers: `message id`. */
  readonly what: string;
  readonly children?: string;
}

/** Copies a text and shows a tick. */
export function CopyButton({ text, what, children }: CopyButtonProps) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle');
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);

  const copy = async () => {
    const isDone = await copyText(typeof text === 'string' ? text : text());
    setState(isDone ? 'copied' : 'failed');
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setState('idle'), SHOWN_FOR_MS);
  };
  const labels = { idle: `Copy ${what}`, copied: `Copied ${what}`, failed: 'Copying is not allowed here' };
  const label = labels[state];
  return (
    <button
      type="button"
      className={children === undefined ? 'copy icon-button' : 'button'}
      data-state={state}
      aria-label={label}
      title={label}
      onClick={(event) => {
        event.preventDefault();
        event.stopPropagation();
        void copy();
      }}
    >
      <Icon name={state === 'copied' ? 'tick' : 'copy'} />
      {children !== undefined && <span>{state === 'copied' ? 'Copied' : children}</span>}
      <span className="visually-hidden" role="status">
        {state === 'idle' ? '' : label}
      </span>
    </button>
  );
}

/** Falls back to `execCommand` on pages without TLS: browsers offer the clipboard API on secure pages only. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement('textarea');
    field.value = text;
    field.className = 'visually-hidden';
    document.body.append(field);
    field.select();
    const isDone = document.execCommand('copy');
    field.remove();
    return isDone;
  }
}

export function CodeBlock({ title, code }: { readonly title: string; readonly code: string }) {
  return (
    <figure className="code-block">
      <figcaption className="line spread bold muted small">
        {title}
        <CopyButton text={code} what={title} />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard. */}
      <pre tabIndex={0}>
        <code>{code}</code>
      </pre>
    </figure>
  );
}

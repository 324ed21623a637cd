/** A button that opens a small panel. Escape or a click outside closes it, and the button gets the focus back. */
import { type ReactNode, useId, useLayoutEffect, useRef, useState } from 'react';

const MARGIN = 8;

export function Popover({
  label,
  className,
  title,
  children,
}: {
  readonly label: ReactNode;
  readonly className: string;
  /** Name of the panel for screen readers. */
  readonly title: string;
  readonly children: (close: () => void) => ReactNode;
}) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = useState(false);

  // Before the paint, with the content in place: its size is known only then.
  useLayoutEffect(() => {
    if (isOpen && button.current && panel.current) placeBelow(panel.current, button.current);
  }, [isOpen]);
  const close = () => {
    panel.current?.hidePopover();
    button.current?.focus();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        className={className}
        popoverTarget={id}
        aria-haspopup="dialog"
        aria-expanded={isOpen}
      >
        {label}
      </button>
      <div
        ref={panel}
        id={id}
        className="popover"
        popover="auto"
        role="dialog"
        aria-label={title}
        onToggle={({ newState }) => setOpen(newState === 'open')}
      >
        {isOpen && children(close)}
      </div>
    </>
  );
}

/** Small screens show it as a sheet at the bottom, which needs no position. */
function placeBelow(panel: HTMLElement, button: HTMLElement): void {
  const anchor = button.getBoundingClientRect();
  const left = Math.min(anchor.left, document.documentElement.clientWidth - panel.offsetWidth - MARGIN);
  panel.style.setProperty('--left', `${Math.max(MARGIN, left)}px`);
  panel.style.setProperty('--top', `${anchor.bottom + 4}px`);
}

/** Controls: a panel behind a button, a segmented control, and the behaviour of a combobox. */
import { type KeyboardEvent, type ReactNode, useId, useLayoutEffect, useRef, useState } from 'react';

const MARGIN = 8;

interface PopoverProps {
  readonly label: ReactNode;
  readonly className: string;
  /** Name of the panel for screen readers. */
  readonly title: string;
  readonly children: (close: () => void) => ReactNode;
}

/** A button that opens a small panel. Escape or a click outside closes it, and the button gets the focus back. */
export function Popover({ label, className, title, children }: PopoverProps) {
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

interface SegmentsProps<T extends string> {
  /** What is chosen, for screen readers. */
  readonly legend: string;
  readonly options: Readonly<Partial<Record<T, string>>>;
  readonly chosen: T;
  readonly onChoose: (option: T) => void;
}

/** A segmented control: radio buttons side by side. */
export function Segments<T extends string>({ legend, options, chosen, onChoose }: SegmentsProps<T>) {
  const name = useId();
  return (
    <fieldset className="segments inline">
      <legend className="visually-hidden">{legend}</legend>
      {(Object.entries(options) as [T, string][]).map(([option, label]) => (
        <label key={option}>
          <input type="radio" name={name} checked={chosen === option} onChange={() => onChoose(option)} />
          <span>{label}</span>
        </label>
      ))}
    </fieldset>
  );
}

export interface Option<T> {
  readonly key: string;
  readonly value: T;
  readonly content: ReactNode;
}

/** The behaviour of a combobox, without its looks: a text field with options, selected by the arrow keys. */
export function useOptionList<T>(options: readonly Option<T>[], onPick: (value: T) => void) {
  const id = useId();
  const [selected, setActive] = useState(0);
  const active = Math.max(0, Math.min(selected, options.length - 1));
  const move = (by: number) => setActive((active + by + options.length) % Math.max(1, options.length));

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') move(1);
    else if (event.key === 'ArrowUp') move(-1);
    else if (event.key === 'Enter') {
      const picked = options[active];
      if (!picked) return;
      onPick(picked.value);
    } else return;
    event.preventDefault();
  };
  return {
    onKeyDown,
    /** Selects the first option again, when the options change. */
    reset: () => setActive(0),
    fieldProps: {
      role: 'combobox',
      'aria-expanded': options.length > 0,
      'aria-controls': `${id}-options`,
      'aria-autocomplete': 'list',
      'aria-activedescendant': options[active] ? `${id}-${active}` : undefined,
      autoComplete: 'off',
      autoCapitalize: 'none',
      spellCheck: false,
    } as const,
    list: (label: string) => (
      <div id={`${id}-options`} className="options" role="listbox" aria-label={label} tabIndex={-1}>
        {options.map(({ key, value, content }, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field that controls the list handles the keys.
          <div
            key={key}
            id={`${id}-${index}`}
            ref={index === active ? keepInSight : null}
            role="option"
            tabIndex={-1}
            aria-selected={index === active}
            className="option line spread gap-16"
            onPointerMove={() => setActive(index)}
            onClick={() => onPick(value)}
          >
            {content}
          </div>
        ))}
      </div>
    ),
  };
}

function keepInSight(option: HTMLElement | null): void {
  option?.scrollIntoView({ block: 'nearest' });
}

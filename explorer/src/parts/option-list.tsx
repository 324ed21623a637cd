/** The behaviour of a combobox, without its looks: a text field with options, selected by the arrow keys. */
import { type KeyboardEvent, type ReactNode, useId, useState } from 'react';

export interface Option<T> {
  readonly key: string;
  readonly value: T;
  readonly content: ReactNode;
}

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
            className="option"
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

/** The theme: the system's, or the user's choice. index.html applies the choice before the first paint. */
import { useState } from 'react';

const choices = ['system', 'light', 'dark'] as const;
export type ThemeChoice = (typeof choices)[number];

const STORED_AS = 'lanescan-theme';

function chosenTheme(): ThemeChoice {
  const chosen = document.documentElement.dataset.theme;
  return chosen === 'light' || chosen === 'dark' ? chosen : 'system';
}

export function useTheme(): {
  readonly theme: ThemeChoice;
  readonly next: ThemeChoice;
  choose(theme: ThemeChoice): void;
} {
  const [theme, setTheme] = useState(chosenTheme);
  const next = choices[(choices.indexOf(theme) + 1) % choices.length] ?? 'system';
  const choose = (chosen: ThemeChoice) => {
    setTheme(chosen);
    if (chosen === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    try {
      if (chosen === 'system') localStorage.removeItem(STORED_AS);
      else localStorage.setItem(STORED_AS, chosen);
    } catch {
      // Without storage the choice lasts until the page is closed.
    }
  };
  return { theme, next, choose };
}

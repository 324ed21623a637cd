/** Reads entries of lanescan.yaml. Every error names the place in the file and what to do about it. */

import { nearestName } from './nearest-name.ts';
import { OperatorError } from './operator-error.ts';

/** Environment variables, the values of `${NAME}`. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** Throws an OperatorError. @param key relative to the place; empty for the place itself */
export type Refuse = (key: string, what: string, remedy: string) => never;

/** @example refusalsAt('webhooks[0]', 'lanescan.yaml')('url', 'is not a URL', 'Write it as …') */
export function refusalsAt(place: string, file: string): Refuse {
  return (key, what, remedy) => {
    throw new OperatorError(`${place}${key === '' ? '' : `.${key}`} in ${file} ${what}.`, remedy);
  };
}

export function refuseUnknownName(name: string, known: readonly string[], refuse: Refuse, at = ''): void {
  if (known.includes(name)) return;
  const nearest = nearestName(name, known);
  refuse(
    at,
    `has an unknown key ${JSON.stringify(name)}`,
    nearest ? `Did you mean ${nearest}?` : `It takes ${known.join(', ')}.`,
  );
}

export function variableOf(name: string, key: string, variables: Variables, refuse: Refuse): string {
  const text = variables[name]?.trim() ?? '';
  return text === ''
    ? refuse(key, `needs the variable ${name}, which is not set`, 'Set it in the environment.')
    : text;
}

/** The text with each `${NAME}` replaced by its value. */
export function withVariables(text: string, key: string, variables: Variables, refuse: Refuse): string {
  return text.replace(/\$\{(\w+)\}/g, (_, name: string) => variableOf(name, key, variables, refuse));
}

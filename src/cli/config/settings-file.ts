/** The file lanescan.yaml: its values, and the line of each. */
import { readFileSync } from 'node:fs';
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import { OperatorError } from '../../base/operator-error.ts';
import { type Path, pathText, SettingError } from '../../base/settings.ts';

const DEFAULT_FILE = 'lanescan.yaml';

export type SettingsFile = ReturnType<typeof openSettingsFile>;

/** Opens the file of that name; without one, ./lanescan.yaml where it exists. */
export function openSettingsFile(named: string | undefined) {
  const name = named ?? DEFAULT_FILE;
  const text = readText(name, named === undefined);
  const lines = new LineCounter();
  const document = parseDocument(text ?? '', { lineCounter: lines });
  const [fault] = document.errors;
  if (fault)
    throw new OperatorError(`${name} is not valid YAML: ${fault.message.split('\n')[0]}`, 'Fix the file.', {
      cause: fault,
    });
  const values: unknown = document.toJS() ?? {};
  if (typeof values !== 'object' || values === null || Array.isArray(values))
    throw new OperatorError(
      `${name} is not a mapping of keys to values.`,
      'Write it as `port: 8080`, one key a line.',
    );
  return {
    name,
    isFound: text !== undefined,
    values: values as Readonly<Record<string, unknown>>,
    /** Runs `read`, and adds file and line to its SettingError. */
    locate<T>(read: () => T): T {
      try {
        return read();
      } catch (error) {
        if (!(error instanceof SettingError)) throw error;
        const offset = offsetOf(document.contents, error.path);
        const line = offset === undefined ? '' : `:${lines.linePos(offset).line}`;
        throw new OperatorError(`${pathText(error.path)} in ${name}${line} ${error.problem}.`, error.remedy, {
          cause: error,
        });
      }
    },
  };
}

function readText(name: string, isOptional: boolean): string | undefined {
  try {
    return readFileSync(name, 'utf8');
  } catch (error) {
    if (isOptional && (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new OperatorError(
      `Cannot read the configuration ${name}: ${(error as Error).message}`,
      'Check the path given with --config or LANESCAN_CONFIG.',
      { cause: error },
    );
  }
}

/** Where a key or an entry begins; where it is missing, what should have it. */
function offsetOf(node: unknown, [part, ...rest]: Path): number | undefined {
  if (isMap(node)) {
    const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === part);
    return pair && (offsetOf(pair.value, rest) ?? (pair.key as Node).range?.[0]);
  }
  if (!isSeq(node) || typeof part !== 'number') return undefined;
  const entry = node.items[part] as Node | undefined;
  return offsetOf(entry, rest) ?? entry?.range?.[0];
}

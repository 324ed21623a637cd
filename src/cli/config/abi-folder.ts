/** The folder of ABIs (`abis` in lanescan.yaml), whose errors name the reasons of failed executions. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { explained, OperatorError } from '../../base/operator-error.ts';
import { type AbiSignature, selectorOf } from '../../domain/abi-types.ts';
import { errorsOfAbi } from '../../domain/failures/abi-errors.ts';
import { defineErrors } from '../../domain/failures/revert-data.ts';
import { counted } from '../../text/format.ts';
import type { Config } from './config.ts';

const MAX_FILES = 500;
const MAX_FILE_BYTES = 8 * 1024 * 1024;
const MAX_ERRORS = 10_000;

/** Reads the configured folder; its errors are known from then on, wherever return data is decoded. */
export function loadAbis({ abisFolder }: Pick<Config, 'abisFolder'>) {
  if (abisFolder === null) {
    defineErrors(new Map());
    return undefined;
  }
  const names = jsonFiles(abisFolder);
  const table = new Map<string, AbiSignature>();
  for (const name of names) {
    // Of two errors with the same selector the first is taken, in the order of the files' names.
    for (const error of readErrors(path.join(abisFolder, name))) {
      const selector = selectorOf(error);
      if (!table.has(selector)) table.set(selector, error);
    }
    if (table.size > MAX_ERRORS)
      throw new OperatorError(
        `The ABIs in ${abisFolder} have more than ${counted(MAX_ERRORS, 'error')}.`,
        'Leave out the contracts that no message calls.',
      );
  }
  defineErrors(table);
  return { folder: abisFolder, files: names.length, errors: table.size };
}

/** @example '12 errors of 3 ABIs in ./abis' */
export function describeAbis({ folder, files, errors }: NonNullable<ReturnType<typeof loadAbis>>): string {
  return `${counted(errors, 'error')} of ${counted(files, 'ABI')} in ${folder}`;
}

function jsonFiles(folder: string): readonly string[] {
  const names = explained(
    () => readdirSync(folder).filter((name) => name.toLowerCase().endsWith('.json')),
    (message) => `Cannot read the folder of ABIs ${folder}: ${message}.`,
    'Check `abis` (or LANESCAN_ABIS): it takes a folder of JSON files.',
  );
  if (names.length > MAX_FILES)
    throw new OperatorError(
      `The folder of ABIs ${folder} has ${counted(names.length, 'JSON file')}; at most ${MAX_FILES} are read.`,
      'Leave out the contracts that no message calls.',
    );
  return names.sort();
}

function readErrors(file: string): readonly AbiSignature[] {
  const errors = errorsOfAbi(readJson(file));
  if (typeof errors !== 'string') return errors;
  throw new OperatorError(
    `The ABI ${file} ${errors}.`,
    'Write the ABI as the compiler does, or move the file out of the folder.',
  );
}

function readJson(file: string): unknown {
  const text = explained(
    () => {
      const { size } = statSync(file);
      if (size <= MAX_FILE_BYTES) return readFileSync(file, 'utf8');
      throw new OperatorError(
        `The ABI ${file} has ${size} bytes; at most ${MAX_FILE_BYTES} are read.`,
        'Keep its member `abi` only.',
      );
    },
    (message) => `Cannot read the ABI ${file}: ${message}.`,
    'Check that it is a file that this user may read.',
  );
  return explained(
    // A byte order mark is not part of JSON; editors write it all the same.
    () => JSON.parse(text.replace(/^\uFEFF/, '')),
    (message) => `The ABI ${file} is not valid JSON: ${message}.`,
    'Fix the file, or move it out of the folder.',
  );
}

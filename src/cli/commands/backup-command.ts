import { backUp } from '../../store/server/backup.ts';
import { counted, printable } from '../../text/format.ts';
import type { Command } from '../command.ts';
import { type ConfigFlags, databasePlace } from '../config/config.ts';
import { type CliContext, configOf, withStoreOptions } from '../context.ts';

export function addBackup(program: Command, context: CliContext): void {
  withStoreOptions(program.command('backup'))
    .argument('<folder>', 'data folder to make, which must not exist')
    .description('copy the database while it is in use')
    .notes(`
The copy is of one moment, whatever is written meanwhile. Every table is compared with the original, and the folder appears
when the copy is complete. It is a data folder like any other: use it with --data, or put it in the place of the original.
With DATABASE_URL the copy of that server is an embedded database.

Examples:
  $ lanescan backup backups/monday
  $ lanescan search --data backups/monday      look into the backup`)
    .action(async (folder: string, flags: ConfigFlags) => {
      const config = configOf(flags, context);
      const { tables, rows } = await backUp({
        place: databasePlace(config),
        folder,
        writeLog: (line) => void context.err.write(`${line}\n`),
        signal: context.signal,
      });
      context.out.write(
        `${printable(folder)}: ${counted(tables, 'table')} with ${counted(rows, 'row')}, compared with the original\n`,
      );
    });
}

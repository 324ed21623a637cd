import type { Command } from 'commander';
import type { ConfigFlags } from './config.ts';
import { type CliContext, configOf, withStore, withStoreOptions } from './context.ts';
import { printable } from './terminal-text.ts';

interface MigrateFlags extends ConfigFlags {
  readonly grantRead?: string;
}

export function addMigrate(program: Command, context: CliContext): void {
  withStoreOptions(program.command('migrate'))
    .option('--grant-read <role>', 'let this database role read everything, also what later migrations make')
    .description('bring the database schema up to date (every other verb does so by itself)')
    .addHelpText(
      'after',
      `
Examples:
  $ lanescan migrate
  $ DATABASE_URL=postgresql://… lanescan migrate      before a rolling upgrade
  $ lanescan migrate --grant-read lanescan_reader     for servers that shall only read`,
    )
    .action(({ grantRead, ...flags }: MigrateFlags) =>
      withStore(configOf(flags, context), context, {}, async (store) => {
        const { applied, total } = store.migrations;
        for (const name of applied) context.out.write(`applied ${name}\n`);
        context.out.write(
          applied.length === 0 ? `Up to date: ${total} migrations.\n` : `Done: ${total} migrations.\n`,
        );
        if (grantRead === undefined) return;
        await store.grantRead(grantRead);
        context.out.write(`The role ${printable(grantRead)} may read everything here.\n`);
      }),
    );
}

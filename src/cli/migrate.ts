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
    .description('bring the database schema up to date, or set up a new one')
    .addHelpText(
      'after',
      `
serve, index, import, mirror and demo do so by themselves when they start, unless autoMigrate is false. The other verbs
never do. Older programs may go on meanwhile: what they write is waited for, and afterwards they are refused.

Examples:
  $ lanescan migrate
  $ DATABASE_URL=postgresql://… lanescan migrate      before a rolling upgrade
  $ lanescan migrate --grant-read lanescan_reader     for servers that shall only read`,
    )
    .action(({ grantRead, ...flags }: MigrateFlags) =>
      withStore(configOf(flags, context), context, { schema: 'migrate' }, async (store) => {
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

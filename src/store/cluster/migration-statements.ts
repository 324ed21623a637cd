/** Runs the text of a migration. Citus sends the whole text of a query to the shards, so there it may have one statement only. */
import type { ClientBase } from 'pg';
import { readDistributedTables } from './layout.ts';

/** In the transaction of a migration. */
export async function runMigration(client: ClientBase, text: string): Promise<void> {
  const isDistributed = (await readDistributedTables(client)).length > 0;
  for (const statement of isDistributed ? splitStatements(text) : [text]) await client.query(statement);
}

/** Literals, quoted names, dollar-quoted bodies and comments, in which a semicolon ends nothing; and the semicolon. */
const TOKENS = /'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$[\s\S]*?\$\1\$|--[^\n]*|\/\*[\s\S]*?\*\/|;/g;

/** The statements of a text, without those that are empty. Strings with backslash escapes and `begin atomic` are not known. */
export function splitStatements(text: string): readonly string[] {
  const statements: string[] = [];
  let start = 0;
  let hasCode = false;
  let end = 0;
  const finish = (at: number) => {
    if (hasCode || /\S/.test(text.slice(end, at))) statements.push(text.slice(start, at).trim());
  };
  for (const token of text.matchAll(TOKENS)) {
    const [matched] = token;
    const isComment = matched.startsWith('--') || matched.startsWith('/*');
    if (matched === ';') {
      finish(token.index);
      start = token.index + 1;
      hasCode = false;
    } else {
      hasCode ||= !isComment || /\S/.test(text.slice(end, token.index));
    }
    end = token.index + matched.length;
  }
  finish(text.length);
  return statements;
}

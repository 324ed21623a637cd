/**
 * Static checks of the statements in `src/store`: what Citus rejects or answers wrongly over distributed tables. They need no
 * cluster. Statements for one node alone are exempt, by name.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { filterNames, filterTable } from '../../src/domain/filters/filter-table.ts';
import { parseSearch } from '../../src/domain/filters/search-parameters.ts';
import { distributedTables } from '../../src/store/cluster/layout.ts';
import { distributedSearchSql } from '../../src/store/query/search.ts';
import { renderSql } from '../../src/store/sql.ts';
import { fuji, hashOf, sepolia } from '../fixtures.ts';

const folder = fileURLToPath(new URL('../../src/store/', import.meta.url));
const tables = distributedTables.join('|');
const READS_DISTRIBUTED = new RegExp(`\\b(?:from|join)\\s+(?:${tables})\\b`);

/** Statements that run on one node only; a cluster has other forms of them. */
const singleNodeOnly: readonly (readonly [file: string, excerpt: string])[] = [
  ['cluster/statement-forms.ts', 'select count(*)::int as overdue from ('],
  ['cluster/statement-forms.ts', 'with recursive found'],
  ['cluster/statement-forms.ts', 'select from message_token t where t.message_id = recent.message_id'],
  ['query/history.ts', 'select measured.*'],
  ['query/search.ts', 'offset 0) m'],
  ['query/scan.ts', 'cross join lateral (\n      select message_id from message'],
];

interface Statement {
  readonly file: string;
  readonly text: string;
}

/** All texts in quotes that read or write a distributed table. */
function statements(): readonly Statement[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  return files.flatMap((file) =>
    [...readFileSync(path.join(folder, file), 'utf8').matchAll(/`[^`]*`|'[^'\n]*'/g)]
      .map(([text]) => text)
      .filter((text) => READS_DISTRIBUTED.test(text))
      .filter((text) => !singleNodeOnly.some(([where, excerpt]) => where === file && text.includes(excerpt)))
      .map((text) => ({ file, text })),
  );
}

/** The contents of each pair of parentheses that begins with one of these words. */
function bodiesAfter(text: string, opening: RegExp): readonly string[] {
  return [...text.matchAll(opening)].map((match) => {
    const start = match.index + match[0].length;
    let depth = 1;
    let end = start;
    for (; depth > 0 && end < text.length; end++) {
      if (text[end] === '(') depth++;
      if (text[end] === ')') depth--;
    }
    return text.slice(start, end - 1);
  });
}

/** Aliases that a subquery refers to and does not declare itself. */
function outerAliases(body: string): readonly string[] {
  const declared = new Set(
    [
      ...body.matchAll(/\b(?:from|join|lateral|as|,)\s+(?:\w+\s+(?:as\s+)?)?(\w+)|\)\s+(?:as\s+)?(\w+)/g),
    ].flatMap(([, one, other]) => [one, other]),
  );
  for (const [, table, alias] of body.matchAll(/\b(?:from|join)\s+(\w+)(?:\s+(?:as\s+)?(\w+))?/g)) {
    declared.add(table).add(alias);
  }
  return [...body.matchAll(/(?<![.\w$])([a-z_]\w*)\.[a-z_]\w*/g)]
    .flatMap(([, alias]) => alias ?? [])
    .filter((alias) => !declared.has(alias));
}

const BY_MESSAGE = /message_id = (?:\w+\.)?message_id|message_id = id\b/;
const LIMIT_OR_AGGREGATE = /\blimit\b|\b(?:count|max|min|sum|\w+_agg)\s*\(/;

const faults: Readonly<Record<string, (text: string) => readonly string[]>> = {
  'a subquery without columns': (text) =>
    text.match(new RegExp(`\\bselect\\s+from\\s+(?:${tables})\\b`, 'g')) ?? [],
  'a lateral subquery with a limit or an aggregate that is not of the same message': (text) =>
    bodiesAfter(text, /\blateral\s*\(/g).filter(
      (body) => READS_DISTRIBUTED.test(body) && LIMIT_OR_AGGREGATE.test(body) && !BY_MESSAGE.test(body),
    ),
  'a correlated subquery that is not of the same message': (text) =>
    bodiesAfter(text, /(?<!\blateral\s*)\((?=\s*select\b)/g).filter(
      (body) =>
        new RegExp(`^[^(]*\\bfrom\\s+(?:${tables})\\b`).test(body) &&
        outerAliases(body).length > 0 &&
        !BY_MESSAGE.test(body),
    ),
};

describe('no statement over distributed tables has', () => {
  const all = statements();

  it.each(Object.entries(faults))('%s', (_, faultsOf) => {
    expect(all.length).toBeGreaterThan(40);
    const found = all.flatMap(({ file, text }) => faultsOf(text).map((fault) => `${file}: ${fault.trim()}`));
    expect(found, 'Citus refuses it: write it in another way, or in two forms (statement-forms.ts)').toEqual(
      [],
    );
  });

  it('exemptions that nothing needs any more', () => {
    for (const [file, excerpt] of singleNodeOnly) {
      expect(readFileSync(path.join(folder, file), 'utf8'), `${file}: ${excerpt}`).toContain(excerpt);
    }
  });
});

describe('the checks find', () => {
  it.each([
    ['a subquery without columns', 'select 1 where exists (select from message m)'],
    [
      'a lateral subquery with a limit or an aggregate that is not of the same message',
      'from lane l cross join lateral (select * from message m where m.onramp = l.onramp limit 1) newest',
    ],
    [
      'a correlated subquery that is not of the same message',
      'select 1 from unnest($1) n where exists (select 1 from message m where m.sequence_number = n.number)',
    ],
  ])('%s', (name, text) => {
    expect(faults[name]?.(text).length).toBe(1);
  });

  it('nothing in what Citus runs', () => {
    const text = `select m.x, (select max(h.position) from history h where h.message_id = m.message_id) from message m
      left join lateral (select body from fact where message_id = m.message_id limit 1) f on true
      where exists (select 1 from message_token t where t.source_token = $1 limit 1)`;
    expect(Object.values(faults).flatMap((faultsOf) => faultsOf(text))).toEqual([]);
  });
});

/** A value for each filter; with both ends of a time range, nothing could be between the examples. */
const values = new Map(filterNames.map((name) => [name, filterTable[name].example]));
const names = filterNames.filter((name) => name !== 'sentBefore');
const pairs = names.flatMap((one, index) => names.slice(index).map((other) => [one, other] as const));

it.each(pairs)('a search for %s and %s has its order and its only limit outermost', (one, other) => {
  const query = parseSearch([...new Set([one, other])].map((name) => [name, values.get(name) ?? '']));
  const { text } = renderSql(
    distributedSearchSql(query, {
      lanesOf: () => [{ source: sepolia.chainSelector, dest: fuji.chainSelector }],
      messagesOf: () => [hashOf('message').slice(2)],
      hasToken: () => true,
      isEmpty: false,
    }),
  );
  expect(text).toMatch(/\border by (?:m\.)?sort_key desc, (?:m\.)?message_id desc limit \$\d+\s*$/);
  expect(text.match(/\blimit\b/g)).toHaveLength(1);
  expect(text).not.toMatch(/\b(?:lateral|offset)\b/);
});

// @module-tag slow: fills a store and looks at a hundred query plans
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from 'vitest';
import { parseSearch, type RawParameters } from '../../../src/domain/filters/search-parameters.ts';
import { SEARCH_SETTINGS, searchSql } from '../../../src/store/query/search.ts';
import { renderSql } from '../../../src/store/sql.ts';
import { sortKeySql } from '../../../src/store/write/message-row.ts';
import { createTestDatabase, type TestDatabase } from '../../database.ts';
import { evmAddress, fuji, hashOf, sepolia, svmAddress } from '../../fixtures.ts';

const ROWS = 100_000;
/** More than any network of these messages has. */
const LANES = 13;
/** A page reads one row more than it shows, and another one to see that the last sort key has no equal. */
const PAGE_ROWS = 22;

/**
 * A hundred thousand messages as they come in life: one lane with most of the traffic, a few busy senders
 * and many rare ones, nearly all of it executed, every second message with tokens.
 */
const fill = `
  insert into message (message_id, sort_key, sent_at, position, source_selector, dest_selector, sequence_number, finality,
                       summary_length, status, ready, is_snapshot, sender, receiver, origin, onramp,
                       send_transaction, receipt_transaction, digest, record)
  select id, ${sortKeySql('sent_at', 'id')}, sent_at, n, case when lane < 6 then 1 else lane end, case when lane < 8 then 2 else lane end, n, 0,
         20, status, status = 6 or n % 500 = 0, true, party('sender', least(n % 3001, n % 7 * 400)),
         party('receiver', n % 2003), party('sender', n % 3001), party('onramp', lane),
         sha256(('send' || n / 2)::bytea),
         case when status >= 6 then sha256(('receipt' || n)::bytea) end,
         substring(id for 16), '{"messageId":"' || repeat('x', 700) || '"}'
  from (select n, sha256(n::text::bytea) as id,
               timestamptz '2026-01-01' + (n / 3) * interval '1 second' as sent_at,
               n % 13 as lane,
               (case when n % 100 < 93 then 7 when n % 100 < 95 then 6 else n % 6 end)::smallint as status
        from generate_series(1, ${ROWS}) n) rows;
  insert into message_token (message_id, token_index, sort_key, source_selector, dest_selector, source_token, dest_token,
                             source_pool, sender_beginning, receiver_beginning)
  select sha256(n::text::bytea), i,
         ${sortKeySql(`(timestamptz '2026-01-01' + (n / 3) * interval '1 second')`, 'sha256(n::text::bytea)')},
         case when lane < 6 then 1 else lane end, case when lane < 8 then 2 else lane end,
         party('token', token), party('dest token', token), party('pool', token),
         substr(party('sender', least(n % 3001, n % 7 * 400)), 1, 7), substr(party('receiver', n % 2003), 1, 7)
  from generate_series(2, ${ROWS}, 2) n, generate_series(0, n % 3) i, 
       lateral (select least(n % 211, n % 5) as token, n % 13 as lane) t;
  insert into fact (message_id, fact_id, kind, network, block_number, seen_at, block_hash, transaction, body)
  select sha256(n::text::bytea), sha256(('fact' || n)::bytea), case when n % 10 = 0 then 7 else 6 end, 2, n, now(),
         sha256(n::text::bytea), sha256(('attempt' || n)::bytea), ''
  from generate_series(1, ${ROWS} / 2) n;
  insert into earlier_attempt (message_id, fact_id, kind, block_number, seen_at, network, block_hash, transaction, body)
  select sha256('1'), sha256(('fact' || n)::bytea), 7, n, now(), 2, sha256(n::text::bytea),
         sha256(('earlier' || n)::bytea), ''
  from generate_series(1, ${ROWS} / 10) n;
  insert into lane_fact (source_selector, dest_selector, onramp, to_sequence, from_sequence, fact_id, kind, network,
                         block_number, seen_at, block_hash, merkle_root, transaction, body)
  select 1, 2, party('onramp', 0), n * 10, n * 10 - 9, sha256(('range' || n)::bytea), 1, 2, n, now(),
         sha256(n::text::bytea), sha256(('root' || n)::bytea), sha256(('commit' || n)::bytea), ''
  from generate_series(1, ${ROWS} / 10) n;
  insert into root_blessing (network, merkle_root, fact_id, kind, block_number, seen_at, block_hash, transaction, body)
  select 2, sha256(('root' || n)::bytea), sha256(('blessing' || n)::bytea), 1, n, now(), sha256(n::text::bytea),
         sha256(('bless' || n)::bytea), ''
  from generate_series(1, ${ROWS} / 10) n;
  insert into lane_total (source_selector, dest_selector, status, ready, messages)
  select source_selector, dest_selector, status, ready, count(*) from message group by 1, 2, 3, 4;
`;
const party = (kind: string, number: number) => `
  substring(sha256(('${kind}' || ${number})::bytea) for 20)`;

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.url, options: SEARCH_SETTINGS });
  await client.connect();
  await client.query(`create function party(kind text, number bigint) returns bytea language sql immutable
                      return substring(sha256((kind || number)::bytea) for 20)`);
  // Indexes are quicker made at once than row by row.
  const { rows: indexes } = await client.query(
    `select indexname, indexdef from pg_indexes
     where tablename in ('message', 'message_token') and indexname not like '%_key'`,
  );
  await client.query(indexes.map(({ indexname }) => `drop index ${indexname}`).join(';'));
  await client.query(fill);
  await client.query(indexes.map(({ indexdef }) => indexdef).join(';'));
  await client.query('vacuum analyze');
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

interface Plan {
  readonly 'Node Type': string;
  readonly 'Index Name'?: string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Loops': number;
  readonly 'Actual Rows': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
}

/** A parameter as SQL: EXECUTE takes no parameters. */
function literal(value: unknown): string {
  if (Array.isArray(value)) return `array[${value.map(literal).join()}]::bytea[]`;
  if (Buffer.isBuffer(value)) return `'\\x${value.toString('hex')}'`;
  return pg.escapeLiteral(value instanceof Date ? value.toISOString() : String(value));
}

async function planOf(raw: RawParameters, after: object | null = null): Promise<Plan> {
  const query = { ...parseSearch(raw), after } as ReturnType<typeof parseSearch>;
  const { text } = renderSql(searchSql(query));
  const { rows } = await client.query(`explain (generic_plan, format json) ${text}`);
  return rows[0]['QUERY PLAN'][0].Plan;
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];

/** The plan as an indented list, for people. */
function outline(plan: Plan, depth = 0): string {
  const name = [plan['Node Type'], plan['Index Name'] ?? plan['Relation Name']].filter(Boolean).join(' ');
  return [
    `${'  '.repeat(depth)}${name}`,
    ...(plan.Plans ?? []).map((child) => outline(child, depth + 1)),
  ].join('\n');
}

const orderedNodes = new Set([
  'Limit',
  'Merge Append',
  'Append',
  'Unique',
  'Nested Loop',
  'Memoize',
  'Subquery Scan',
  'Result',
  'Incremental Sort',
  'Index Scan',
  'Index Only Scan',
]);

const byMessageId = new Set(['message_key', 'message_token_key']);

/** What reads or keeps more than the page needs. Sorting the few rows that are looked up by message id is not. */
function offences(plan: Plan): string[] {
  let [input] = plan.Plans ?? [];
  while (input?.['Node Type'] === 'Subquery Scan') [input] = input.Plans ?? [];
  const isLookUp = byMessageId.has(input?.['Index Name'] ?? '');
  const isFine = orderedNodes.has(plan['Node Type']) || (plan['Node Type'] === 'Sort' && isLookUp);
  return [...(isFine ? [] : [plan['Node Type']]), ...(plan.Plans ?? []).flatMap(offences)];
}

async function addressOf(kind: string, number: number): Promise<string> {
  const { rows } = await client.query(`select encode(${party(kind, number)}, 'hex') as digits`);
  return `0x${rows[0].digits}`;
}

/** From the table that has most of them; what was looked at in vain counts. */
async function mostRowsRead(raw: RawParameters): Promise<number> {
  const { text, values } = renderSql(searchSql(parseSearch(raw)));
  await client.query(`deallocate all; prepare search as ${text}`);
  const { rows } = await client.query(
    `explain (analyze, format json) execute search (${values.map((value) => literal(value)).join()})`,
  );
  const read = nodesOf(rows[0]['QUERY PLAN'][0].Plan)
    .filter((node) => node['Relation Name']?.startsWith('message'))
    .map((node) => node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)));
  return Math.max(...read);
}

async function single(name: string): Promise<readonly [string, string][]> {
  const { rows } = await client.query(
    `select encode(send_transaction, 'hex') as send, encode(receipt_transaction, 'hex') as receipt,
            encode(message_id, 'hex') as id
     from message where receipt_transaction is not null limit 1`,
  );
  const busy = await addressOf('sender', 400);
  const rare = await addressOf('sender', 2999);
  const token = await addressOf('token', 3);
  const values: Record<string, string> = {
    'sender, busy': busy,
    'sender, rare': rare,
    'sender, unknown': evmAddress('nobody'),
    receiver: await addressOf('receiver', 5),
    'sourceChainSelector, busy': '1',
    'sourceChainSelector, rare': '9',
    'sourceChainSelector, unknown': '999',
    destChainSelector: '2',
    readyForManualExecOnly: 'true',
    sourceTransactionHash: `0x${rows[0].send}`,
    'status, busy': 'SUCCESS',
    'status, rare': 'COMMITTED',
    'status, three': 'COMMITTED,BLESSED,FAILED',
    sentAfter: '2026-01-01T06:00:00Z',
    sentBefore: '2026-01-01T06:00:00Z',
    'address, busy': busy,
    'address, rare': rare,
    sourceTokenAddress: token,
    destTransactionHash: `0x${rows[0].receipt}`,
    'q, an address': busy,
    'q, a token': token,
    'q, a hash': `0x${rows[0].send}`,
    'q, a message id': `0x${rows[0].id}`,
  };
  const value = values[name];
  return value === undefined ? [] : [[name.split(',')[0] ?? '', value]];
}

const names = [
  'nothing',
  'sender, busy',
  'sender, rare',
  'sender, unknown',
  'receiver',
  'sourceChainSelector, busy',
  'sourceChainSelector, rare',
  'sourceChainSelector, unknown',
  'destChainSelector',
  'readyForManualExecOnly',
  'sourceTransactionHash',
  'status, busy',
  'status, rare',
  'status, three',
  'sentAfter',
  'sentBefore',
  'address, busy',
  'address, rare',
  'sourceTokenAddress',
  'destTransactionHash',
  'q, an address',
  'q, a token',
  'q, a hash',
  'q, a message id',
];

describe(`among ${ROWS} messages, a page is read in order from indexes, without a sort`, () => {
  const after = { sentAt: Date.UTC(2026, 0, 1, 5), messageId: '7'.repeat(64) };

  test.each(names)('for %s, on the first page and behind a cursor', async (name) => {
    const raw = await single(name);
    expect(raw.length).toBe(name === 'nothing' ? 0 : 1);
    for (const key of [null, after]) {
      for (const limit of ['1', '20', '1000']) {
        const plan = await planOf([...raw, ['limit', limit]], key);
        expect(
          offences(plan),
          `limit ${limit}, ${key ? 'behind a cursor' : 'first page'}:\n${outline(plan)}`,
        ).toEqual([]);
      }
    }
  });

  it('by one process, however cheap others seem to be', async () => {
    await client.query('set parallel_setup_cost = 0; set parallel_tuple_cost = 0');
    await client.query('set min_parallel_table_scan_size = 0; set min_parallel_index_scan_size = 0');
    onTestFinished(async () => {
      await client.query('reset parallel_setup_cost; reset parallel_tuple_cost');
      await client.query('reset min_parallel_table_scan_size; reset min_parallel_index_scan_size');
    });
    for (const name of names) {
      const plan = await planOf(await single(name));
      expect(
        nodesOf(plan).filter((node) => node['Node Type'].startsWith('Gather')),
        outline(plan),
      ).toEqual([]);
    }
  });

  it('except that message ids, a hundred at most, are looked up by key and then sorted', async () => {
    const ids = Array.from({ length: 100 }, (_, i) => hashOf(i)).join(',');
    for (const key of [null, after]) {
      const plan = await planOf([['messageId', ids]], key);
      expect(offences(plan), outline(plan)).toEqual([]);
      const indexes = nodesOf(plan).flatMap((node) => node['Index Name'] ?? []);
      expect(indexes, outline(plan)).toEqual(['message_key']);
    }
  });
});

describe('every combination of the six filters of the contract', () => {
  /** The index that finds it; the lanes of a network are listed first where it is `by lane`. */
  const rule = ([sender, receiver, source, dest, ready, transaction]: readonly boolean[]): string => {
    if (transaction) return 'message_by_send_transaction';
    const kind = ready ? 'message_ready_by' : 'message_by';
    const actors = sender && receiver ? 'actors' : sender ? 'sender' : receiver ? 'receiver' : undefined;
    if (source && dest) return `${kind}${actors ? `_${actors}` : ''}_lane`;
    if (actors && (source || dest)) return `${kind}_${actors}_lane by lane`;
    const only = actors ?? (source ? 'source' : dest ? 'dest' : undefined);
    return `${kind}_${only ?? 'time'}`;
  };
  const parameters = [
    'sender',
    'receiver',
    'sourceChainSelector',
    'destChainSelector',
    'readyForManualExecOnly',
    'sourceTransactionHash',
  ];
  const combinations = Array.from({ length: 64 }, (_, bits) =>
    parameters.map((_, place) => (bits >> place) % 2 === 1),
  );

  test.each(
    combinations.map(
      (chosen) => [parameters.filter((_, i) => chosen[i]).join(' + ') || 'none', chosen] as const,
    ),
  )(
    '%s: found by one index, and no more rows read than there are on the page, in its lanes or in its transaction',
    async (_, chosen) => {
      // Both actors are busy, and have hardly a message in common.
      const values = [
        await addressOf('sender', 400),
        await addressOf('receiver', 5),
        '1',
        '2',
        'true',
        (await single('sourceTransactionHash'))[0]?.[1] ?? '',
      ];
      const raw = parameters.flatMap((name, i) => (chosen[i] ? [[name, values[i] ?? ''] as const] : []));
      const plan = await planOf(raw);
      const scans = nodesOf(plan).filter((node) => node['Relation Name'] === 'message');
      const lanes = nodesOf(plan).some((node) => node['Relation Name'] === 'lane_total') ? ' by lane' : '';
      expect(
        scans.map((scan) => `${scan['Index Name']}${lanes}`),
        outline(plan),
      ).toEqual([rule(chosen)]);

      expect(await mostRowsRead(raw)).toBeLessThanOrEqual(lanes ? PAGE_ROWS * LANES : PAGE_ROWS);
    },
  );
});

describe('a token with networks is found on its lanes, and where it never is there is next to nothing to read', () => {
  /** A message here has a token up to three times. */
  const PAGE_OF_TOKENS = 3 * PAGE_ROWS + 2;
  const source = (selector: string) => ['sourceChainSelector', selector] as const;
  const dest = (selector: string) => ['destChainSelector', selector] as const;
  test.each([
    ['a lane', [source('1'), dest('2')], PAGE_OF_TOKENS],
    ['a lane that never was', [source('9'), dest('2')], 0],
    ['a destination', [dest('2')], PAGE_OF_TOKENS * LANES],
    ['a source', [source('9')], PAGE_OF_TOKENS],
    ['a network that never was', [source('999')], 0],
  ] as const)('%s', async (_, networks, mostRows) => {
    for (const [name, indexes] of [
      ['sourceTokenAddress', ['message_token_by_source_lane']],
      ['q', ['message_token_by_source_lane', 'message_token_by_dest_lane', 'message_token_by_pool_lane']],
    ] as const) {
      const raw = [[name, await addressOf('token', 3)] as const, ...networks];
      const plan = await planOf(raw);
      const scans = nodesOf(plan).filter((node) => node['Relation Name'] === 'message_token');
      expect(
        scans.flatMap((scan) => scan['Index Name'] ?? []),
        outline(plan),
      ).toEqual(indexes);
      expect(await mostRowsRead(raw)).toBeLessThanOrEqual(mostRows);
    }
  });
});

describe('a search for a busy address and something else that no message, or hardly any, has', () => {
  test.each([
    ['q, with an unknown address', 'q', 'address'],
    ['q, with an unknown hash', 'q', 'hash'],
    ['q, with the hash of a transaction', 'q', 'transaction'],
    ['q, with a message id', 'q', 'id'],
    ['an unknown token', 'sourceTokenAddress', 'address'],
  ] as const)('%s, reads no more rows than a page has', async (_, name, kind) => {
    const busy = await addressOf('sender', 400);
    const others = {
      address: evmAddress('nobody'),
      hash: hashOf('nothing'),
      transaction: (await single('sourceTransactionHash'))[0]?.[1] ?? '',
      id: (await single('q, a message id'))[0]?.[1] ?? '',
    };
    const searches: readonly RawParameters[] =
      name === 'q'
        ? [[['q', `${busy},${others[kind]}`]], [['q', `${others[kind]},${busy}`]]]
        : [
            [
              ['address', busy],
              [name, others[kind]],
            ],
          ];
    for (const raw of searches) {
      const plan = await planOf(raw);
      expect(offences(plan), outline(plan)).toEqual([]);
      expect(await mostRowsRead(raw), outline(plan)).toBeLessThanOrEqual(PAGE_ROWS);
    }
  });
});

describe('a common token and a busy actor who hardly ever meet are found together', () => {
  test.each([
    ['sender', 400, 'message_token_by_source_sender'],
    ['receiver', 5, 'message_token_by_source_receiver'],
  ] as const)('%s', async (name, number, index) => {
    const raw = [
      [name, await addressOf(name, number)],
      ['sourceTokenAddress', await addressOf('token', 3)],
    ] as const;
    for (const more of [[], [['destChainSelector', '2']], [['status', 'SUCCESS']]] as RawParameters[]) {
      const plan = await planOf([...raw, ...more]);
      expect(offences(plan), outline(plan)).toEqual([]);
      const scans = nodesOf(plan).filter((node) => node['Relation Name'] === 'message_token');
      expect(scans.map((scan) => scan['Index Name'])).toEqual([index]);
    }
    // A message here has a token up to three times.
    expect(await mostRowsRead(raw)).toBeLessThanOrEqual(3 * PAGE_ROWS + 2);
  });
});

describe('the statements that are really sent', () => {
  it('are those in search-statements.sql', async () => {
    const address = evmAddress('one');
    const searches: readonly (readonly [string, RawParameters, boolean?])[] = [
      ['The newest messages.', []],
      ['The newest messages, summary view, behind a cursor.', [['view', 'summary']], true],
      ['By sender.', [['sender', address]]],
      ['By receiver on SVM.', [['receiver', svmAddress('one')]]],
      [
        'A lane.',
        [
          ['sourceChainSelector', sepolia.chainSelector],
          ['destChainSelector', fuji.chainSelector],
        ],
      ],
      ['Ready for manual execution.', [['readyForManualExecOnly', 'true']]],
      ['By source transaction.', [['sourceTransactionHash', hashOf('one')]]],
      ['By one status.', [['status', 'FAILED']]],
      ['By several statuses, behind a cursor.', [['status', 'COMMITTED,BLESSED']], true],
      [
        'Sent in a period.',
        [
          ['sentAfter', '2026-01-01T00:00:00Z'],
          ['sentBefore', '2026-02-01T00:00:00Z'],
        ],
      ],
      ['By address: sender, receiver or origin.', [['address', address]]],
      ['By source token.', [['sourceTokenAddress', address]]],
      [
        'By source token, to a network.',
        [
          ['sourceTokenAddress', address],
          ['destChainSelector', fuji.chainSelector],
        ],
      ],
      ['By destination transaction.', [['destTransactionHash', hashOf('one')]]],
      ['By message ids.', [['messageId', `${hashOf('one')},${hashOf('two')}`]]],
      ['By an address as a search term.', [['q', address]]],
      ['By a hash or id as a search term.', [['q', hashOf('one')]]],
      ['By two addresses as search terms.', [['q', `${address},${evmAddress('two')}`]]],
      [
        'Several at once: one is spread out, the others are conditions.',
        [
          ['sender', address],
          ['address', evmAddress('two')],
          ['sourceTokenAddress', evmAddress('three')],
          ['status', 'SENT,FAILED'],
        ],
      ],
    ];
    const after = { sentAt: Date.UTC(2026, 0, 1), messageId: '7'.repeat(64) };
    const statements = searches.map(([title, raw, isLaterPage]) => {
      const { text } = renderSql(searchSql({ ...parseSearch(raw), after: isLaterPage ? after : null }));
      return `-- ${title}\n${text.replace(/^ +$/gm, '')};\n`;
    });
    const header =
      '-- The SQL of the search as it is sent. Written by explain.test.ts; update with `npx vitest run test/store/query/explain.test.ts -u`.\n\n';
    const file = fileURLToPath(new URL('./search-statements.sql', import.meta.url));
    await expect(header + statements.join('\n')).toMatchFileSnapshot(file);
  });
});

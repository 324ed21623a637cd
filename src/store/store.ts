/**
 * The store: PostgreSQL, embedded or anywhere, behind a handful of functions.
 *
 * Reads take a connection from the pool for one statement; writes go through `apply`, one at a time.
 */
import pg from 'pg';
import { encodeCursor } from '../domain/cursor.ts';
import { OperatorError } from '../domain/errors.ts';
import type { Fact } from '../domain/facts.ts';
import { statusRank } from '../domain/lifecycle.ts';
import type { PageKey, SearchQuery } from '../domain/query.ts';
import { type ApplyReport, applyFacts } from './apply.ts';
import { type ChangeListener, listenForChanges } from './change-listener.ts';
import { openEmbedded } from './embedded.ts';
import { type ExecutionInputs, readExecutionInputs } from './execution-inputs.ts';
import { createExporter, type ExportRecords } from './export.ts';
import { readFigures, type StoreFigures } from './figures.ts';
import { type MessageHistory, type RecordedChange, readChangesAfter, readMessageHistory } from './history.ts';
import { createIndexLedger, type IndexLedger } from './index-ledger.ts';
import type { OrphanedBlock } from './lane-facts.ts';
import {
  type DayCounts,
  type DeliveryBounds,
  type DeliverySelection,
  type LaneEnds,
  type LaneIdentity,
  type LanePage,
  type LaneSelection,
  readDays,
  readLaneIdentity,
  readLanes,
  readRecentDeliveries,
  readTotals,
  type Totals,
} from './lanes.ts';
import { type MigrationReport, migrate } from './migrate.ts';
import { createMirrorLedger, type MirrorLedger } from './mirror-ledger.ts';
import {
  type NetworkProgress,
  type NetworkTraffic,
  readNetworkProgress,
  readNetworkTraffic,
} from './networks.ts';
import type { Read } from './read.ts';
import { createReadGuard, DatabaseAwayError, DatabaseBusyError, type ReadObserver } from './read-guard.ts';
import { searchSql } from './search.ts';
import { renderSql } from './sql.ts';
import { createWebhookDeliveries, type WebhookDeliveries } from './webhook-deliveries.ts';

/** Where the data is: a database of its own in a folder, or a server by URL. */
export type DatabasePlace = { readonly dataFolder: string } | { readonly url: string };

export interface StoreOptions {
  readonly place: DatabasePlace;
  /** What the caller takes: real data, simulated data, or whichever is there. A new store becomes what is asked for. */
  readonly content?: 'real' | 'simulated' | 'any';
  readonly connections?: number;
  readonly notice?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/** A page of ready-made JSON records. */
export interface Page {
  readonly records: readonly string[];
  /** The cursor of the next page; null on the last one. */
  readonly cursor: string | null;
}

export interface StoredRecord {
  readonly record: string;
  /** Changes exactly when the record does. */
  readonly digest: string;
  /** When it was executed (ms since 1970), for a message that succeeded; null while it may still move. */
  readonly settledAt: number | null;
}

/** Connections of one kind. */
export interface PoolFigures {
  readonly pool: string;
  readonly total: number;
  readonly idle: number;
  /** How many wait for a connection. */
  readonly waiting: number;
}

export interface Store {
  readonly simulated: boolean;
  readonly migrations: MigrationReport;
  readonly serverVersion: string;
  search(query: SearchQuery): Promise<Page>;
  /** A message by the 64 hexadecimal digits of its id. */
  findMessage(messageId: string): Promise<StoredRecord | undefined>;
  /** The same without the record, which is then not read. */
  messageDigest(messageId: string): Promise<Omit<StoredRecord, 'record'> | undefined>;
  /** Records whose message ids begin with these hexadecimal digits, at most `limit`. */
  findMessagesByPrefix(digits: string, limit: number): Promise<readonly string[]>;
  /** How many messages there are: counted while they are few, estimated by PostgreSQL beyond. */
  countMessages(): Promise<{ readonly count: number; readonly isExact: boolean }>;
  /**
   * Everything that matches, newest first, from one snapshot, in batches; holds a connection until it ends.
   * Where all connections for exports are taken, the first batch throws an ExportsBusyError.
   */
  readonly exportRecords: ExportRecords;
  /** How far other servers have been followed. */
  readonly mirror: MirrorLedger;
  /** How far chains have been read, and by whom. */
  readonly index: IndexLedger;
  /** What happened to one message; undefined where nothing ever did. */
  messageHistory(messageId: string): Promise<MessageHistory | undefined>;
  /** What an execution by hand needs; undefined for a message that nobody knows. */
  executionInputs(messageId: string): Promise<ExecutionInputs | undefined>;
  /** The changes of all messages behind a position, in order. */
  changesAfter(position: string, limit: number): Promise<readonly RecordedChange[]>;
  /** The position of the latest change. */
  latestPosition(): Promise<string>;
  /** Calls back whenever there may be changes behind the latest position that was read. */
  onChanges(wake: () => void): ChangeListener;
  lanes(selection: LaneSelection): Promise<LanePage>;
  /** What a lane is; undefined where it has no message. */
  laneIdentity(lane: Required<LaneEnds>): Promise<LaneIdentity | undefined>;
  recentDeliveries(lane: DeliverySelection, bounds: DeliveryBounds): Promise<readonly number[]>;
  /** Of all messages, and of the lanes with the most. */
  totals(topLanes: number): Promise<Totals>;
  /** Messages by the UTC day they were sent, `2026-01-31`, both ends included. */
  days(first: string, last: string): Promise<readonly DayCounts[]>;
  networkTraffic(): Promise<readonly NetworkTraffic[]>;
  /** How far networks are indexed; empty where records come from imports only. */
  networkProgress(): Promise<readonly NetworkProgress[]>;
  figures(): Promise<StoreFigures>;
  pools(): readonly PoolFigures[];
  /** Tells of every read from now on; the answer ends it. */
  observeReads(observer: ReadObserver): () => void;
  /** What webhook subscriptions are owed. */
  readonly webhooks: WebhookDeliveries;
  apply(facts: readonly Fact[], orphaned?: readonly OrphanedBlock[]): Promise<ApplyReport>;
  /** Throws when the database does not answer. */
  ping(): Promise<void>;
  /** Empties a simulated store; refuses a real one. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

/** One expensive search must not hold a connection for long. */
const READ_TIMEOUT_MS = 15_000;
/** Beyond the server's own time-out: it is silent, and its connection is lost. */
const SILENCE_TIMEOUT_MS = READ_TIMEOUT_MS + 2_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** The longest wait of a read for a connection, free or new. */
const READ_WAIT_MS = 2_000;
/** How many reads may wait for each connection; a burst of short ones is soon served, and long ones end by time. */
const WAITING_PER_CONNECTION = 100;
const EXPORTS_AT_ONCE = 4;
/** Counting visits every row; beyond so many an estimate has to do. */
const COUNTED_MESSAGES = 100_000;

/**
 * Opens the store, migrated to this version's schema.
 *
 * @example const store = await openStore({ place: { dataFolder: './data' } });
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { place, content = 'any', connections = 10 } = options;
  const embedded =
    'dataFolder' in place ? await openEmbedded({ ...options, dataFolder: place.dataFolder }) : undefined;
  // A Unix socket needs no TLS, whatever PGSSLMODE asks of other servers.
  const connection = embedded
    ? { ...embedded.connection, ssl: false }
    : connectionOf((place as { url: string }).url);
  const pools: Pools = {
    readers: createPool(
      { ...connection, connectionTimeoutMillis: READ_WAIT_MS, query_timeout: SILENCE_TIMEOUT_MS },
      connections,
      `-c timezone=UTC -c statement_timeout=${READ_TIMEOUT_MS}`,
    ),
    // Writers queue at the store's row anyway: one at work, one ready to follow.
    writers: createPool(connection, 2, '-c timezone=UTC'),
    // An export lasts as long as its reader takes; it must not keep searches waiting.
    exporters: createPool(connection, EXPORTS_AT_ONCE, '-c timezone=UTC'),
    // Deliveries and leases go on while searches or imports have all of their connections.
    keepers: createPool(connection, 4, `-c timezone=UTC -c statement_timeout=${READ_TIMEOUT_MS}`),
  };
  const close = async () => {
    await Promise.all(Object.values(pools).map((pool) => pool.end()));
    await embedded?.leave();
  };
  try {
    return await createStore(pools, connection, content, close);
  } catch (error) {
    await close();
    throw 'url' in place ? explainConnectionFailure(error, place.url) : error;
  }
}

interface Pools {
  readonly readers: pg.Pool;
  readonly writers: pg.Pool;
  readonly exporters: pg.Pool;
  readonly keepers: pg.Pool;
}

function createPool(connection: pg.PoolConfig, max: number, options: string): pg.Pool {
  const pool = new pg.Pool({
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    ...connection,
    max,
    options: `${connection.options ?? ''} ${options}`.trim(),
    application_name: 'lanescan',
  });
  // A connection that breaks while idle is replaced by the pool; the next query tells whoever asks.
  pool.on('error', () => undefined);
  return pool;
}

async function createStore(
  { readers, writers, exporters, keepers }: Pools,
  connection: pg.ClientConfig,
  content: 'real' | 'simulated' | 'any',
  close: () => Promise<void>,
): Promise<Store> {
  const { migrations, simulated, serverVersion } = await withClient(writers, async (client) => {
    const version = (await client.query('show server_version')).rows[0].server_version as string;
    refuseOldServer(version);
    const report = await migrate(client);
    return { migrations: report, simulated: await identify(client, content), serverVersion: version };
  });

  const guard = createReadGuard(readers, readers.options.max * WAITING_PER_CONNECTION);
  let pinging: Promise<void> | undefined;

  const read = (label: string, text: string, values: unknown[]): Promise<string[][]> =>
    guard.run(label, () =>
      withClient(readers, async (client) => {
        const result = await client.query({ text, values, rowMode: 'array' });
        return result.rows;
      }),
    );

  /** Reads that the metrics show under this label. */
  const readAs =
    (label: string): Read =>
    (text, values) =>
      guard.run(label, () =>
        withClient(readers, async (client) => (await client.query(text, [...values])).rows),
      );
  const readObjects = readAs('other');

  return {
    simulated,
    migrations,
    serverVersion,

    async search(query) {
      const { text, values } = renderSql(searchSql(query));
      const records = (await read('search', text, values)).map(([record]) => record ?? '');
      if (records.length <= query.limit) return { records, cursor: null };
      records.length = query.limit;
      const after = keyOf(records[query.limit - 1] ?? '');
      return { records, cursor: encodeCursor({ filters: query.filters, view: query.view, after }) };
    },

    async findMessage(messageId) {
      const rows = await read(
        'message',
        `select encode(digest, 'hex'), ${SETTLED_AT}, record from message where message_id = $1`,
        [Buffer.from(messageId, 'hex')],
      );
      const [digest, settledAt, record] = rows[0] ?? [];
      return record === undefined || digest === undefined
        ? undefined
        : { record, digest, settledAt: numberOrNull(settledAt) };
    },

    async messageDigest(messageId) {
      const rows = await read(
        'messageDigest',
        `select encode(digest, 'hex'), ${SETTLED_AT} from message where message_id = $1`,
        [Buffer.from(messageId, 'hex')],
      );
      const [digest, settledAt] = rows[0] ?? [];
      return digest === undefined ? undefined : { digest, settledAt: numberOrNull(settledAt) };
    },

    async findMessagesByPrefix(digits, limit) {
      const rows = await read(
        'messagePrefix',
        'select record from message where message_id between $1 and $2 order by message_id limit $3',
        [Buffer.from(digits.padEnd(64, '0'), 'hex'), Buffer.from(digits.padEnd(64, 'f'), 'hex'), limit],
      );
      return rows.map(([record]) => record ?? '');
    },

    async countMessages() {
      const rows = await read(
        'count',
        `select (select count(*) from (select from message limit $1) few)::text,
                (select reltuples::bigint from pg_class where oid = 'message'::regclass)::text`,
        [COUNTED_MESSAGES + 1],
      );
      const [counted, estimated] = (rows[0] ?? []).map(Number);
      const count = counted ?? 0;
      return count <= COUNTED_MESSAGES
        ? { count, isExact: true }
        : { count: Math.max(count, estimated ?? 0), isExact: false };
    },

    exportRecords: createExporter(exporters, async (processId) => {
      await readObjects('select pg_cancel_backend($1)', [processId]);
    }),

    mirror: createMirrorLedger(
      (use) => withClient(readers, use),
      (use) => withClient(writers, use),
    ),

    index: createIndexLedger(
      (use) => withClient(readers, use),
      (use) => withClient(writers, use),
      (use) => withClient(keepers, use),
    ),

    messageHistory: (messageId) => readMessageHistory(readAs('history'), messageId),
    executionInputs: (messageId) => readExecutionInputs(readAs('executionInputs'), messageId),
    changesAfter: (position, limit) => readChangesAfter(readAs('changes'), position, limit),
    latestPosition: async () =>
      String((await readAs('position')('select position from store', []))[0]?.position ?? 0),
    onChanges: (wake) => listenForChanges(connection, wake),
    lanes: (selection) => readLanes(readAs('lanes'), selection),
    laneIdentity: (lane) => readLaneIdentity(readAs('laneIdentity'), lane),
    recentDeliveries: (lane, bounds) => readRecentDeliveries(readAs('deliveries'), lane, bounds),
    totals: (topLanes) => readTotals(readAs('totals'), topLanes),
    days: (first, last) => readDays(readAs('days'), first, last),
    networkTraffic: () => readNetworkTraffic(readAs('networkTraffic')),
    networkProgress: () => readNetworkProgress(readAs('networkProgress')),
    figures: () => readFigures(readAs('figures')),
    pools: () =>
      Object.entries({ readers, writers, exporters }).map(
        ([pool, { totalCount, idleCount, waitingCount }]) => ({
          pool,
          total: totalCount,
          idle: idleCount,
          waiting: waitingCount,
        }),
      ),
    observeReads: (observer) => guard.observe(observer),

    webhooks: createWebhookDeliveries((use) => withClient(keepers, use)),

    apply: (facts, orphaned) => withClient(writers, (client) => applyFacts(client, facts, orphaned)),

    ping() {
      // One for all who ask meanwhile: probes may come as often as they like.
      pinging ??= read('ping', 'select 1', [])
        .then(() => undefined)
        .finally(() => {
          pinging = undefined;
        });
      return pinging;
    },

    async reset() {
      if (!simulated) throw new Error('Only a simulated store can be emptied');
      await withClient(writers, (client) =>
        // One transaction, and the store's row first, as every writer takes it.
        client.query(
          'update store set position = 0; truncate message, message_token, fact, lane_fact, root_blessing, history, lane_total, day_total, lane_delivery, lane_onramp, lane_run, network_progress, webhook_subscription, webhook_delivery, mirror, mirror_owed, index_network, index_block, index_contract, index_backlog, index_failure, index_unreadable, index_chore',
        ),
      );
    },

    close,
  };
}

/** SQL of what `StoredRecord.settledAt` says. */
const SETTLED_AT = `case when status = ${statusRank('SUCCESS')}
  then (extract(epoch from sent_at) * 1000 + coalesce(delivery_ms, 0))::bigint end`;

function numberOrNull(value: string | null | undefined): number | null {
  return value == null ? null : Number(value);
}

async function withClient<T>(pool: pg.Pool, use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken = false;
  const onError = () => {
    broken = true;
  };
  client.on('error', onError);
  try {
    return await use(client);
  } catch (error) {
    // The server's last word on a connection. It hangs up right after; until then the pool would hand it out.
    if (/^(08|57P)/.test(String((error as { code?: unknown } | undefined)?.code))) broken = true;
    // Its answer may still come, and would be taken for the answer to the next question.
    if (/Query read timeout/.test(String((error as Error | undefined)?.message))) broken = true;
    throw error;
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}

/** The order's key of a stored record; both of its fields stand in either view. */
function keyOf(record: string): PageKey {
  const { sendTimestamp, messageId } = JSON.parse(record) as { sendTimestamp: string; messageId: string };
  return { sentAt: Date.parse(sendTimestamp), messageId: messageId.slice(2) };
}

function refuseOldServer(version: string): void {
  if (Number.parseInt(version, 10) >= 15) return;
  throw new OperatorError(
    `The database server is PostgreSQL ${version}; Lanescan needs 15 or later.`,
    'Upgrade the server, or leave DATABASE_URL unset to use the embedded one.',
  );
}

/** Whether the store holds simulated data. Real and simulated records never share a store. */
async function identify(client: pg.ClientBase, content: 'real' | 'simulated' | 'any'): Promise<boolean> {
  let { rows } = await client.query('select simulated from store');
  if (rows.length === 0) {
    await client.query('insert into store (simulated) values ($1) on conflict do nothing', [
      content === 'simulated',
    ]);
    ({ rows } = await client.query('select simulated from store'));
  }
  const simulated = rows[0].simulated as boolean;
  if (content === 'real' && simulated) {
    throw new OperatorError(
      'This store holds the demo’s simulated network; real records are never mixed into it.',
      'Choose another folder with --data, or another database with DATABASE_URL.',
    );
  }
  if (content === 'simulated' && !simulated) {
    throw new OperatorError(
      'This store holds real records; the demo’s simulated ones are never mixed into it.',
      'Give the demo a folder of its own with --data, or an empty database with DATABASE_URL.',
    );
  }
  return simulated;
}

function connectionOf(url: string): pg.ClientConfig {
  if (
    !URL.canParse(url) ||
    !/^postgres(ql)?:$/.test(new URL(url).protocol) ||
    hasBareSeparator(new URL(url))
  ) {
    throw new OperatorError(
      'DATABASE_URL is not a PostgreSQL URL.',
      'Write it as postgresql://user:password@host:5432/database, with special characters percent-encoded.',
    );
  }
  // The driver lets `options` in the URL replace ours, which searches and statistics rely on; both shall hold.
  const withoutOptions = new URL(url);
  const options = withoutOptions.searchParams.get('options') ?? '';
  withoutOptions.searchParams.delete('options');
  return { connectionString: withoutOptions.href, options };
}

/** A `/`, `?` or `#` in a password ends the host too early: what follows, `@` and all, is then no path or query. */
function hasBareSeparator({ pathname, search, hash }: URL): boolean {
  return pathname.includes('@') || search.split('=', 1)[0]?.includes('@') === true || hash !== '';
}

function explainConnectionFailure(error: unknown, url: string): unknown {
  if (error instanceof OperatorError) return error;
  const { host, pathname } = new URL(url);
  const { message } = error as Error;
  return new OperatorError(
    `Cannot use the database ${pathname.slice(1)} at ${host || 'the local socket'}: ${message || String(error)}`,
    'Check DATABASE_URL, that the server runs and lets this user in, and that the database exists.',
    { cause: error },
  );
}

/** Whether an error means that the database is away or overloaded, rather than that we asked for something wrong. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (error instanceof DatabaseBusyError || error instanceof DatabaseAwayError) return true;
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  // 08: connection exceptions, 53: insufficient resources, 57: operator intervention (shutdown, time-out);
  // 3D000 and 55000: the database is gone, or lets nobody in.
  if (code !== undefined && /^((08|53|57)...|3D000|55000)$/.test(code)) return true;
  if (code !== undefined && /^E(CONN|PIPE|NOENT|NOTFOUND|HOST|NET|TIMEDOUT|AI_)/.test(code)) return true;
  return /timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error|Cannot use a pool after|Query read timeout/i.test(
    message ?? '',
  );
}

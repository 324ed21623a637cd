/**
 * The store: PostgreSQL, embedded or anywhere, behind a handful of functions.
 *
 * Reads take a connection from the pool for one statement; writes go through `apply`, one at a time.
 */
import type pg from 'pg';
import type { Notice } from '../base/notice.ts';
import { OperatorError } from '../base/operator-error.ts';
import type { CursorCodec } from '../domain/cursor.ts';
import type { Fact } from '../domain/facts.ts';
import { statusRank } from '../domain/lifecycle.ts';
import type { SearchQuery } from '../domain/query.ts';
import { type ApplyReport, applyFacts } from './apply.ts';
import {
  type ChangeListener,
  createChangeSignal,
  listenForChanges,
  type WakeFollower,
} from './change-listener.ts';
import { withClient } from './client.ts';
import { connectionOf, explainConnectionFailure } from './connection.ts';
import {
  answeringProcess,
  embeddedConnections,
  refuseTooManyProcesses,
  wholeProcess,
} from './connection-budget.ts';
import { readCursorCodec } from './cursor-key.ts';
import { createDerivedRows, type DerivedRows } from './derived-rows.ts';
import { openEmbedded } from './embedded.ts';
import { requireCluster } from './embedded-folder.ts';
import { type ExecutionInputs, readExecutionInputs } from './execution-inputs.ts';
import { createExporter, type ExportRecords } from './export.ts';
import { readFigures, type StoreFigures } from './figures.ts';
import {
  type ChangesRead,
  type MessageHistory,
  readChangesAfter,
  readLastChangeAt,
  readMessageHistory,
} from './history.ts';
import type { OrphanedBlock } from './lane-facts.ts';
import {
  type DeliveryBounds,
  type DeliverySelection,
  type LaneEnds,
  type LaneIdentity,
  type LanePage,
  type LaneSelection,
  readLaneIdentity,
  readLanes,
  readRecentDeliveries,
  readStats,
  type Stats,
  type StatsSelection,
} from './lanes.ts';
import { createIndexLedger, type IndexLedger } from './ledger/index-ledger.ts';
import { databaseSchema, knownSchema, type MigrationReport, migrate, requireSchema } from './migrate.ts';
import { createMirrorLedger, type MirrorLedger, type MirrorState, readMirrors } from './mirror-ledger.ts';
import {
  type NetworkProgress,
  type NetworkTraffic,
  readNetworkProgress,
  readNetworkTraffic,
} from './networks.ts';
import { openPools, type Pools } from './pools.ts';
import {
  arrayFrame,
  createReads,
  createSingleFlight,
  DatabaseAwayError,
  DatabaseBusyError,
  type Page,
  type PageFrame,
  type ReadObserver,
  type ReplicaFigures,
  readPage,
} from './reads/reads.ts';
import { grantRead, isReadOnly, refuseUnreadableTables } from './roles.ts';
import { NotInitialisedError } from './schema-errors.ts';
import { createSchemaWatch } from './schema-watch.ts';
import { isShort, pageBound, searchSql } from './search.ts';
import { identitySql } from './server-facts.ts';
import { readServerSettings, type ServerSettings } from './server-settings.ts';
import { renderSql } from './sql.ts';
import { createWebhookDeliveries, type WebhookDeliveries } from './webhook-deliveries.ts';
import { explainRefusedWriter } from './writer-guard.ts';

/** Where the data is: a database of its own in a folder, or a server by URL. */
export type DatabasePlace = { readonly dataFolder: string } | { readonly url: string };

export interface StoreOptions {
  readonly place: DatabasePlace;
  /** URLs of streaming replicas of the server at `place`; reads for answers go to those that have caught up. */
  readonly replicas?: readonly string[];
  /** What the caller takes: real data, simulated data, or whichever is there. A new store becomes what is asked for. */
  readonly content?: 'real' | 'simulated' | 'any';
  /** What the caller is going to do; where the database role may only read, whoever wants to write is refused. */
  readonly access?: 'read' | 'write';
  /**
   * What becomes of a database whose schema is older, or that is not there yet: it is brought up to date, or refused
   * without any change.
   */
  readonly schema?: 'migrate' | 'expect';
  /** Whether pages are made of rows as bytes, by internals of the driver (default), or of the driver's own rows. */
  readonly rawRows?: boolean;
  /** The most connections for reads, where others than `wholeProcess` says. */
  readonly connections?: number;
  /** This process is to start so many others that answer; refused where the server has no room for their connections. */
  readonly startsProcesses?: number;
  /** This process is one of so many that only answer. */
  readonly isOneOf?: number;
  readonly notice?: Notice;
  readonly signal?: AbortSignal;
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
  /** Lets another database role read everything here, now and after later migrations. */
  grantRead(role: string): Promise<void>;
  /** Settings of the server, as writers get them. */
  serverSettings(): Promise<ServerSettings>;
  search(query: SearchQuery, frame?: PageFrame): Promise<Page>;
  /** Encodes and decodes cursors with the key of this database. */
  readonly cursors: CursorCodec;
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
  /**
   * The changes of all messages after a position, in order: at most `limit`, and at most `maxBytes` of records
   * (MAX_CHANGES_BYTES where it is not given), but always the first one.
   */
  changesAfter(position: string, limit: number, maxBytes?: number): Promise<ChangesRead>;
  /** The position of the latest change. */
  latestPosition(): Promise<string>;
  /**
   * Changes with everything that is written to messages, as soon as it is committed. Many who ask share one look.
   * Undefined while the primary is away and only replicas can be asked.
   */
  version(): Promise<string | undefined>;
  /** Calls back whenever there may be changes, and every second with the position of the store. */
  onChanges(wake: WakeFollower): ChangeListener;
  lanes(selection: LaneSelection): Promise<LanePage>;
  /** What a lane is; undefined where it has no message. */
  laneIdentity(lane: Required<LaneEnds>): Promise<LaneIdentity | undefined>;
  recentDeliveries(lane: DeliverySelection, bounds: DeliveryBounds): Promise<readonly number[]>;
  /** Counts of all messages, of the lanes with the most, and by the day they were sent, from one snapshot. */
  stats(selection: StatsSelection): Promise<Stats>;
  networkTraffic(): Promise<readonly NetworkTraffic[]>;
  /** How far networks are indexed; empty where records come from imports only. */
  networkProgress(): Promise<readonly NetworkProgress[]>;
  /** Mirrors that are meant to follow a source. */
  mirrors(): Promise<readonly MirrorState[]>;
  /** When the latest change was recorded; null where there is none. */
  lastChangeAt(): Promise<Date | null>;
  figures(): Promise<StoreFigures>;
  pools(): readonly PoolFigures[];
  /** How the replicas do, in the order in which they were given. */
  replicas(): Promise<readonly ReplicaFigures[]>;
  /** Tells of every read from now on; the answer ends it. */
  observeReads(observer: ReadObserver): () => void;
  /** What is kept beside the records: whether it agrees with them, and how it is made anew. */
  readonly derived: DerivedRows;
  /** What webhook subscriptions are owed. */
  readonly webhooks: WebhookDeliveries;
  apply(facts: readonly Fact[], orphaned?: readonly OrphanedBlock[]): Promise<ApplyReport>;
  /** Throws when the database does not answer. */
  ping(): Promise<void>;
  /** The time by the database's clock (ms since 1970), which all servers share. */
  clock(): Promise<number>;
  /** Empties a simulated store; refuses a real one. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

/** Counting visits every row; beyond so many an estimate has to do. */
const COUNTED_MESSAGES = 100_000;

/**
 * Opens the store. By default its schema is brought up to date first.
 *
 * @example const store = await openStore({ place: { dataFolder: './data' } });
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const {
    place,
    content = 'any',
    access = 'read',
    schema = 'migrate',
    startsProcesses = 1,
    isOneOf = 1,
    notice = () => undefined,
    signal,
  } = options;
  const known = await knownSchema();
  if ('dataFolder' in place && schema === 'expect') await requireCluster(place.dataFolder);
  const sizes = isOneOf > 1 ? answeringProcess(isOneOf) : wholeProcess;
  const { connections = sizes.readers } = options;
  const embedded =
    'dataFolder' in place
      ? await openEmbedded({
          ...options,
          dataFolder: place.dataFolder,
          maxConnections: embeddedConnections(startsProcesses),
        })
      : undefined;
  // A Unix socket needs no TLS, whatever PGSSLMODE asks of other servers.
  const connection = embedded
    ? { ...embedded.connection, ssl: false }
    : connectionOf((place as { url: string }).url, 'DATABASE_URL');
  const { pools, destroyConnections, ...opened } = openPools({
    primary: connection,
    replicas: (options.replicas ?? []).map((url) => connectionOf(url, 'DATABASE_REPLICA_URL')),
    sizes: { ...sizes, readers: connections },
    rawRows: options.rawRows ?? true,
    schema: known,
    notice,
  });
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= opened.close().then(() => embedded?.leave());
    return closing;
  };
  // Opening may wait for another process that migrates. A signal to stop ends that wait.
  signal?.addEventListener('abort', destroyConnections);
  try {
    const needs = {
      ...{ content, access, schema, notice, signal, known, startsProcesses },
      isEmbedded: embedded !== undefined,
    };
    return await createStore(pools, connection, needs, close);
  } catch (error) {
    await close();
    signal?.throwIfAborted();
    throw 'url' in place ? explainConnectionFailure(error, place.url, 'DATABASE_URL') : error;
  } finally {
    signal?.removeEventListener('abort', destroyConnections);
  }
}

interface StoreNeeds
  extends Required<Pick<StoreOptions, 'content' | 'access' | 'schema' | 'notice' | 'startsProcesses'>> {
  readonly signal: AbortSignal | undefined;
  /** The number of the schema that this program knows. */
  readonly known: number;
  readonly isEmbedded: boolean;
}

async function createStore(
  pools: Pools,
  connection: pg.ClientConfig,
  { content, access, schema, notice, signal, known, startsProcesses, isEmbedded }: StoreNeeds,
  close: () => Promise<void>,
): Promise<Store> {
  const { readers, writers, exporters, keepers, replicas } = pools;
  const { migrations, simulated, serverVersion, identity } = await withClient(writers, async (client) => {
    const version = (await client.query('show server_version')).rows[0].server_version as string;
    refuseOldServer(version);
    if (startsProcesses > 1) await refuseTooManyProcesses(client, startsProcesses, isEmbedded);
    const report =
      schema === 'migrate' ? await migrate(client, { notice, signal }) : await requireSchema(client);
    await refuseUnreadableTables(client);
    if (access === 'write' && (await isReadOnly(client))) {
      throw new OperatorError(
        'The database role may only read, which is enough for answering but not for indexing, importing, webhooks or the demo.',
        'Give this process the role that owns the tables, by DATABASE_URL. What shall only answer is `lanescan serve` without --index and without webhooks in its configuration.',
      );
    }
    const { rows } =
      replicas.length > 0 ? await client.query(`select ${identitySql} as identity`) : { rows: [] };
    return {
      migrations: report,
      simulated: await identify(client, content, schema),
      serverVersion: version,
      identity: String(rows[0]?.identity),
    };
  });
  const cursors = await withClient(writers, readCursorCodec);

  const schemaWatch = createSchemaWatch({
    known,
    readSchema: () => withClient(keepers, databaseSchema),
    notice,
  });
  const reading = <T>(use: (client: pg.PoolClient) => Promise<T>): Promise<T> =>
    withClient(readers, use).catch(schemaWatch.explain);
  const writing =
    (pool: pg.Pool) =>
    <T>(use: (client: pg.PoolClient) => Promise<T>): Promise<T> =>
      withClient(pool, use).catch((error) => {
        throw explainRefusedWriter(error, known);
      });
  const [write, keep] = [writing(writers), writing(keepers)];

  const reads = createReads(pools, {
    identity,
    migrations: migrations.total,
    explain: schemaWatch.explain,
    notice,
  });
  let pinging: Promise<void> | undefined;

  return {
    simulated,
    migrations,
    serverVersion,
    cursors,
    serverSettings: () => withClient(writers, readServerSettings),
    grantRead: (role) => withClient(writers, (client) => grantRead(client, role)),

    search(query, frame = arrayFrame) {
      const { text, values } = renderSql(searchSql(query));
      return reads.run('search', {
        name: reads.nameOf(text),
        text,
        values,
        isShort: isShort(query),
        bound: pageBound(query),
        collect: (rows) => readPage(rows, query, frame, cursors),
      });
    },

    async findMessage(messageId) {
      const rows = await reads.readRows(
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
      const rows = await reads.readRows(
        'messageDigest',
        `select encode(digest, 'hex'), ${SETTLED_AT} from message where message_id = $1`,
        [Buffer.from(messageId, 'hex')],
      );
      const [digest, settledAt] = rows[0] ?? [];
      return digest === undefined ? undefined : { digest, settledAt: numberOrNull(settledAt) };
    },

    async findMessagesByPrefix(digits, limit) {
      const rows = await reads.readRows(
        'messagePrefix',
        'select record from message where message_id between $1 and $2 order by message_id limit $3',
        [Buffer.from(digits.padEnd(64, '0'), 'hex'), Buffer.from(digits.padEnd(64, 'f'), 'hex'), limit],
      );
      return rows.map(([record]) => record ?? '');
    },

    async countMessages() {
      const rows = await reads.readRows(
        'count',
        `select (select count(*) from (select from message limit $1) few)::text,
                (select reltuples::bigint from pg_class where oid = 'message'::regclass)::text`,
        [COUNTED_MESSAGES + 1],
        { isShort: false },
      );
      const [counted, estimated] = (rows[0] ?? []).map(Number);
      const count = counted ?? 0;
      return count <= COUNTED_MESSAGES
        ? { count, isExact: true }
        : { count: Math.max(count, estimated ?? 0), isExact: false };
    },

    exportRecords: createExporter(exporters, async (processId) => {
      await reads.readOnPrimaryAs('other')('select pg_cancel_backend($1)', [processId]);
    }),

    mirror: createMirrorLedger(reading, write),

    index: createIndexLedger(reading, write, keep),

    messageHistory: (messageId) => readMessageHistory(reads.readAs('history'), messageId),
    executionInputs: (messageId) => readExecutionInputs(reads.readAs('executionInputs'), messageId),
    changesAfter: (position, limit, maxBytes) =>
      readChangesAfter(reads.readOnPrimaryAs('changes'), position, limit, maxBytes),
    latestPosition: async () =>
      String((await reads.readAs('position')('select position from store', []))[0]?.position ?? 0),
    version: reads.version,
    onChanges: createChangeSignal(
      (onChange) => listenForChanges(connection, onChange),
      async () =>
        Number((await reads.readOnPrimaryAs('position')('select position from store', []))[0]?.position),
    ),
    lanes: (selection) => readLanes(reads.readAs('lanes'), selection),
    laneIdentity: (lane) => readLaneIdentity(reads.readAs('laneIdentity'), lane),
    recentDeliveries: (lane, bounds) => readRecentDeliveries(reads.readAs('deliveries'), lane, bounds),
    stats: (selection) => readStats(reads.readAs('stats'), selection),
    // Single-flight: every tab of the explorer and every probe of /readyz asks for these again and again.
    networkTraffic: createSingleFlight(() => readNetworkTraffic(reads.readAs('networkTraffic'))),
    networkProgress: createSingleFlight(() => readNetworkProgress(reads.readAs('networkProgress'))),
    mirrors: createSingleFlight(() => readMirrors(reads.readAs('mirrors'))),
    lastChangeAt: createSingleFlight(() => readLastChangeAt(reads.readAs('lastChange'))),
    figures: () => readFigures(reads.readOnPrimaryAs('figures')),
    pools: () => {
      const figuresOf = (name: string, pool: pg.Pool): PoolFigures => ({
        pool: name,
        total: pool.totalCount,
        idle: pool.idleCount,
        waiting: pool.waitingCount + reads.waitingFor(pool),
      });
      return [
        figuresOf('readers', readers),
        figuresOf('writers', writers),
        figuresOf('exporters', exporters),
        ...replicas.map((pool, index) => figuresOf(`replica_${index + 1}`, pool)),
      ];
    },
    replicas: reads.replicas,
    observeReads: reads.observe,

    derived: createDerivedRows(write),

    webhooks: createWebhookDeliveries(keep),

    apply: (facts, orphaned) => write((client) => applyFacts(client, facts, orphaned)),

    ping() {
      // One for all who ask meanwhile: probes may come as often as they like.
      pinging ??= reads
        .readRows('ping', 'select 1', [])
        .then(schemaWatch.refuseIfMoved)
        .finally(() => {
          pinging = undefined;
        });
      return pinging;
    },

    async clock() {
      const rows = await reads.readOnPrimaryAs('clock')(
        'select extract(epoch from clock_timestamp())::float8 * 1000 as now',
        [],
      );
      return Number(rows[0]?.now);
    },

    async reset() {
      if (!simulated) throw new Error('Only a simulated store can be emptied');
      await write((client) =>
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

function refuseOldServer(version: string): void {
  if (Number.parseInt(version, 10) >= 15) return;
  throw new OperatorError(
    `The database server is PostgreSQL ${version}; Lanescan needs 15 or later.`,
    'Upgrade the server, or leave DATABASE_URL unset to use the embedded one.',
  );
}

/** Whether the store holds simulated data. Real and simulated records never share a store. */
async function identify(
  client: pg.ClientBase,
  content: Required<StoreOptions>['content'],
  schema: Required<StoreOptions>['schema'],
): Promise<boolean> {
  let { rows } = await client.query('select simulated from store');
  if (rows.length === 0) {
    if (schema === 'expect') throw new NotInitialisedError('The database has a schema, but no store in it.');
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

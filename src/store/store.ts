/**
 * The store: PostgreSQL, embedded or on a server, behind one interface. This file is its only entrance.
 *
 * Reads take a connection from the pool for one statement (`reads/`). Writes go through `apply`, one at a time.
 */
import type pg from 'pg';
import type { WriteLog } from '../base/log.ts';
import type { Fact } from '../domain/facts.ts';
import { statementForms } from './cluster/statement-forms.ts';
import { readClusterStatus } from './cluster/workers.ts';
import { createDistributedWrites, singleNodeWrites } from './cluster/write-coordinator.ts';
import { createDerivedRows } from './derived/derived-rows.ts';
import { createIndexLedger } from './ledger/index-ledger.ts';
import { createMirrorLedger } from './ledger/mirror-ledger.ts';
import { createWebhookDeliveries } from './ledger/webhook-deliveries.ts';
import { createChangeReads } from './query/change-listener.ts';
import { readDiskUsage } from './query/disk-usage.ts';
import { createExporter } from './query/export.ts';
import { createMessageReads } from './query/message-reads.ts';
import { createStatisticsReads } from './query/statistics-reads.ts';
import { createReads, createSharedRun, type ReadObserver } from './reads/reads.ts';
import { readCursorCodec } from './schema/cursor-key.ts';
import { databaseSchema, knownSchema } from './schema/migrate.ts';
import {
  type PreparationOptions,
  prepareDatabase,
  type SchemaPolicy,
  type StoreContent,
} from './schema/preparation.ts';
import { tables } from './schema/tables.ts';
import { createSchemaWatch, explainRejectedWriter } from './schema/writer-guard.ts';
import { connectionOf, explainConnectionFailure, withClient } from './server/client.ts';
import { answeringProcess, embeddedConnections, wholeProcess } from './server/connection-budget.ts';
import { openEmbedded } from './server/embedded.ts';
import { requireCluster } from './server/embedded-folder.ts';
import { type OpenPools, openPools } from './server/pools.ts';
import { grantRead } from './server/roles.ts';
import { readServerSettings } from './server/server-facts.ts';
import { applyFacts } from './write/apply.ts';
import type { OrphanedBlock } from './write/lane-facts.ts';

export type { StoredRecord } from './query/message-reads.ts';
export { isDatabaseUnavailable } from './server/database-errors.ts';

/** Where the data is: an embedded database in a folder, or a server by URL. */
export type DatabasePlace = { readonly dataFolder: string } | { readonly url: string };

export interface StoreOptions {
  readonly place: DatabasePlace;
  /** URLs of streaming replicas of the server at `place`; reads go to those that have caught up. */
  readonly replicas?: readonly string[];
  readonly content?: StoreContent;
  /** With `write`, a database role that may only read is rejected. */
  readonly access?: 'read' | 'write';
  readonly schema?: SchemaPolicy;
  /** The most connections for reads; by default as in `wholeProcess`. */
  readonly connections?: number;
  /** How many worker processes this one starts; rejected where the server has no room for their connections. */
  readonly startsProcesses?: number;
  /** This process is one of so many worker processes. */
  readonly isOneOf?: number;
  readonly writeLog?: WriteLog;
  readonly signal?: AbortSignal;
}

export type Store = Awaited<ReturnType<typeof createStore>>;
export type PoolStats = ReturnType<Store['pools']>[number];

/**
 * Opens the store. By default, pending migrations are applied first.
 *
 * @example const store = await openStore({ place: { dataFolder: './data' } });
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { place, schema = 'migrate', isOneOf = 1, writeLog = () => undefined, signal } = options;
  const known = await knownSchema();
  if ('dataFolder' in place && schema === 'expect') await requireCluster(place.dataFolder);
  const sizes = isOneOf > 1 ? answeringProcess(isOneOf) : wholeProcess;
  const embedded =
    'dataFolder' in place
      ? await openEmbedded({
          ...options,
          ...place,
          maxConnections: embeddedConnections(options.startsProcesses ?? 1),
        })
      : undefined;
  const connection = embedded?.connection ?? connectionOf((place as { url: string }).url, 'DATABASE_URL');
  const { destroyConnections, ...opened } = openPools({
    primary: connection,
    replicas: (options.replicas ?? []).map((url) => connectionOf(url, 'DATABASE_REPLICA_URL')),
    sizes: { ...sizes, readers: options.connections ?? sizes.readers },
    schema: known,
    writeLog,
  });
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= opened.close().then(() => embedded?.leave());
    return closing;
  };
  // Opening may wait for another process that migrates. The abort signal ends that wait.
  signal?.addEventListener('abort', destroyConnections);
  try {
    const { content = 'any', access = 'read', startsProcesses = 1 } = options;
    return await createStore(opened, connection, close, known, {
      ...{ content, access, schema, startsProcesses, writeLog, signal },
      isEmbedded: embedded !== undefined,
      hasReplicas: (options.replicas ?? []).length > 0,
    });
  } catch (error) {
    await close();
    signal?.throwIfAborted();
    throw 'url' in place ? explainConnectionFailure(error, place.url, 'DATABASE_URL') : error;
  } finally {
    signal?.removeEventListener('abort', destroyConnections);
  }
}

/** `known` is the number of the schema that this program knows. */
async function createStore(
  { writePools, openReadPools }: Pick<OpenPools, 'writePools' | 'openReadPools'>,
  connection: pg.ClientConfig,
  close: () => Promise<void>,
  known: number,
  preparation: PreparationOptions,
) {
  const { writers, exporters, leases } = writePools;
  const { isEmbedded, writeLog } = preparation;
  const { migrations, simulated, serverVersion, layout, identity } = await withClient(writers, (client) =>
    prepareDatabase(client, preparation),
  );
  const cursors = await withClient(writers, readCursorCodec);
  const pools = { ...writePools, ...openReadPools(layout) };
  const schemaWatch = createSchemaWatch(known, () => withClient(leases, databaseSchema), writeLog);
  const withReader = <T>(use: (client: pg.PoolClient) => Promise<T>): Promise<T> =>
    withClient(pools.readers, use).catch(schemaWatch.explain);
  const writerOf =
    (pool: pg.Pool) =>
    <T>(use: (client: pg.PoolClient) => Promise<T>): Promise<T> =>
      withClient(pool, use).catch((error) => {
        throw explainRejectedWriter(error, known);
      });
  const [withWriter, withLeaseClient] = [writerOf(writers), writerOf(leases)];
  const writes = layout === 'single' ? singleNodeWrites : createDistributedWrites(withWriter, writeLog);
  const reads = createReads(pools, {
    identity,
    migrations: migrations.total,
    explain: schemaWatch.explain,
    writeLog,
  });

  const cancel = (processId: number) =>
    reads.readOnPrimaryAs('other')('select pg_cancel_backend($1::int)', [processId]);
  const cluster = async () => (layout === 'single' ? undefined : withClient(leases, readClusterStatus));
  return {
    simulated,
    migrations,
    serverVersion,
    ...createMessageReads(reads, cursors, layout),
    ...createChangeReads(reads, connection, layout),
    ...createStatisticsReads(reads, layout),
    ...createExporter(exporters, layout, cancel),

    /** The one way in for facts; see `apply.ts`. */
    apply: (facts: readonly Fact[], orphaned?: readonly OrphanedBlock[]) =>
      withWriter((client) => applyFacts(client, writes, facts, orphaned)),
    /** Checks and rebuilds the rows that are derived from records. */
    derived: createDerivedRows(withWriter, writes),
    /** The state of the indexer. */
    index: createIndexLedger(withReader, withWriter, withLeaseClient, writes),
    /** The state of mirrors. */
    mirror: createMirrorLedger(withReader, withWriter),
    /** Cursors and queues of webhook subscriptions. */
    webhooks: createWebhookDeliveries(withLeaseClient),

    /** Lets another database role read all tables, now and after later migrations. */
    grantRead: (role: string) => withClient(writers, (client) => grantRead(client, role)),
    /** Settings of the server, as a session of a writer sees them. */
    serverSettings: () => withClient(writers, readServerSettings),
    /** The state of the cluster; undefined for a store on one node. */
    cluster,
    /** Bytes by table, free space, and a forecast of the growth. */
    diskUsage: async () =>
      readDiskUsage(reads.readOnPrimaryAs('disk'), { isEmbedded, cluster: await cluster() }),
    /** The connections of each pool, and how many callers wait for one. */
    pools: () =>
      Object.entries({
        ...{ readers: pools.readers, writers, exporters },
        ...Object.fromEntries(pools.replicas.map((pool, index) => [`replica_${index + 1}`, pool])),
      }).map(([name, pool]) => ({
        pool: name,
        total: pool.totalCount,
        idle: pool.idleCount,
        waiting: pool.waitingCount + reads.waitingFor(pool),
      })),
    /** The state of the replicas, in the order in which they were given. */
    replicas: reads.replicas,
    /** Calls the observer after every read. Returns the function that removes it. */
    observeReads: (observer: ReadObserver) => reads.observe(observer),
    /** Throws when the database does not answer. Callers share the query that is in flight: probes may come at any rate. */
    ping: createSharedRun(async () => {
      await reads.readPreparedAs('ping')(statementForms[layout].ping, []);
      schemaWatch.throwIfMoved();
    }),
    /** The time by the database's clock (ms since 1970), which all servers share. */
    async clock() {
      const text = 'select extract(epoch from clock_timestamp())::float8 * 1000 as now';
      return Number((await reads.readOnPrimaryAs('clock')(text, []))[0]?.now);
    },
    /** Empties a simulated store; throws for a real one. */
    async reset() {
      if (!simulated) throw new Error('Only a simulated store can be emptied');
      await withWriter((client) => client.query(RESET_SQL));
    },
    close,
  };
}

const keptTables: readonly string[] = ['store', 'store_revision', 'publication', 'cursor_key'];

/** One transaction, which locks the row of `store` first, as every writer does. */
const RESET_SQL = `update store set position = 0; update store_revision set revision = revision + 1;
  update publication set assigned_position = 0;
  truncate ${tables.filter((table) => !keptTables.includes(table)).join(', ')}`;

/**
 * The store: PostgreSQL, embedded or on a server, behind one interface. This file is its only entrance.
 *
 * Reads take a connection from the pool for one statement (`reads/`). Writes go through `apply`, one at a time.
 */
import type pg from 'pg';
import { readClusterStatus } from './cluster/cluster-status.ts';
import { statementForms } from './cluster/statement-forms.ts';
import {
  createDistributedWrites,
  singleNodeWrites,
  type WriteCoordinator,
} from './cluster/write-coordinator.ts';
import { createDerivedRows } from './derived/derived-rows.ts';
import { createIndexLedger } from './ledger/index-ledger.ts';
import { createMirrorLedger } from './ledger/mirror-ledger.ts';
import { createWebhookDeliveries } from './ledger/webhook-deliveries.ts';
import { createChangeReads } from './query/change-reads.ts';
import { createExporter } from './query/export.ts';
import { createMessageReads } from './query/message-reads.ts';
import { createStatisticsReads } from './query/statistics-reads.ts';
import { createReads, type Reads } from './reads/reads.ts';
import { readCursorCodec } from './schema/cursor-key.ts';
import { databaseSchema, knownSchema } from './schema/migrate.ts';
import { type PreparationOptions, prepareDatabase } from './schema/preparation.ts';
import { createSchemaWatch } from './schema/schema-watch.ts';
import { tables } from './schema/tables.ts';
import { explainRejectedWriter } from './schema/writer-guard.ts';
import { withClient } from './server/client.ts';
import { connectionOf, explainConnectionFailure } from './server/connection.ts';
import { answeringProcess, embeddedConnections, wholeProcess } from './server/connection-budget.ts';
import { type EmbeddedDatabase, openEmbedded } from './server/embedded.ts';
import { requireCluster } from './server/embedded-folder.ts';
import { type OpenPools, openPools, type Pools } from './server/pools.ts';
import { grantRead } from './server/roles.ts';
import { readServerSettings } from './server/server-settings.ts';
import type { PoolStats, Store, StoreOptions } from './store-interface.ts';
import { applyFacts } from './write/apply.ts';

export type { StoredRecord } from './query/message-reads.ts';
export { isDatabaseUnavailable } from './server/database-errors.ts';
export type { DatabasePlace, PoolStats, Store, StoreOptions } from './store-interface.ts';

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
  const embedded = await joinEmbedded(options);
  // A Unix socket needs no TLS, whatever PGSSLMODE asks of other servers.
  const connection = embedded
    ? { ...embedded.connection, ssl: false }
    : connectionOf((place as { url: string }).url, 'DATABASE_URL');
  const { destroyConnections, ...opened } = openPools({
    primary: connection,
    replicas: (options.replicas ?? []).map((url) => connectionOf(url, 'DATABASE_REPLICA_URL')),
    sizes: { ...sizes, readers: options.connections ?? sizes.readers },
    rawRows: options.rawRows ?? true,
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

async function joinEmbedded({
  place,
  startsProcesses = 1,
  ...options
}: StoreOptions): Promise<EmbeddedDatabase | undefined> {
  if (!('dataFolder' in place)) return undefined;
  const maxConnections = embeddedConnections(startsProcesses);
  return openEmbedded({ ...options, dataFolder: place.dataFolder, maxConnections });
}

/** `known` is the number of the schema that this program knows. */
async function createStore(
  { writePools, openReadPools }: Pick<OpenPools, 'writePools' | 'openReadPools'>,
  connection: pg.ClientConfig,
  close: () => Promise<void>,
  known: number,
  preparation: PreparationOptions,
): Promise<Store> {
  const { writers, exporters, leases } = writePools;
  const { writeLog } = preparation;
  const { migrations, simulated, serverVersion, layout, identity } = await withClient(writers, (client) =>
    prepareDatabase(client, preparation),
  );
  const cursors = await withClient(writers, readCursorCodec);
  const pools: Pools = { ...writePools, ...openReadPools(layout) };

  const schemaWatch = createSchemaWatch({
    known,
    readSchema: () => withClient(leases, databaseSchema),
    writeLog,
  });
  const withReader = <T>(use: (client: pg.PoolClient) => Promise<T>): Promise<T> =>
    withClient(pools.readers, use).catch(schemaWatch.explain);
  const writerOf =
    (pool: pg.Pool) =>
    <T>(use: (client: pg.PoolClient) => Promise<T>): Promise<T> =>
      withClient(pool, use).catch((error) => {
        throw explainRejectedWriter(error, known);
      });
  const [withWriter, withLeaseClient] = [writerOf(writers), writerOf(leases)];
  const writes: WriteCoordinator =
    layout === 'single' ? singleNodeWrites : createDistributedWrites({ use: withWriter, writeLog });
  const reads = createReads(pools, {
    identity,
    migrations: migrations.total,
    explain: schemaWatch.explain,
    writeLog,
  });

  return {
    simulated,
    migrations,
    serverVersion,
    ...createMessageReads(reads, cursors, layout),
    ...createChangeReads(reads, connection, layout),
    ...createStatisticsReads(reads, layout),
    ...createExporter(exporters, layout, async (processId) => {
      await reads.readOnPrimaryAs('other')('select pg_cancel_backend($1::int)', [processId]);
    }),

    apply: (facts, orphaned) => withWriter((client) => applyFacts(client, writes, facts, orphaned)),
    derived: createDerivedRows(withWriter, writes),
    index: createIndexLedger(withReader, withWriter, withLeaseClient, writes),
    mirror: createMirrorLedger(withReader, withWriter),
    webhooks: createWebhookDeliveries(withLeaseClient),

    grantRead: (role) => withClient(writers, (client) => grantRead(client, role)),
    serverSettings: () => withClient(writers, readServerSettings),
    cluster: async () => (layout === 'single' ? undefined : withClient(leases, readClusterStatus)),
    pools: () => poolStats(pools, reads),
    replicas: reads.replicas,
    observeReads: reads.observe,
    ping: createPing(reads, statementForms[layout].ping, schemaWatch.throwIfMoved),
    async clock() {
      const text = 'select extract(epoch from clock_timestamp())::float8 * 1000 as now';
      return Number((await reads.readOnPrimaryAs('clock')(text, []))[0]?.now);
    },
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

/** Callers share the query that is in flight: probes may come at any rate. */
function createPing(reads: Reads, statement: string, throwIfMoved: () => void): () => Promise<void> {
  let current: Promise<void> | undefined;
  return () => {
    current ??= reads
      .readRows('ping', statement, [])
      .then(throwIfMoved)
      .finally(() => {
        current = undefined;
      });
    return current;
  };
}

function poolStats({ readers, writers, exporters, replicas }: Pools, reads: Reads): PoolStats[] {
  const statsOf = (name: string, pool: pg.Pool): PoolStats => ({
    pool: name,
    total: pool.totalCount,
    idle: pool.idleCount,
    waiting: pool.waitingCount + reads.waitingFor(pool),
  });
  return [
    statsOf('readers', readers),
    statsOf('writers', writers),
    statsOf('exporters', exporters),
    ...replicas.map((pool, index) => statsOf(`replica_${index + 1}`, pool)),
  ];
}

/** The interface of the store. Each group of methods is defined in the module that implements it. */
import type { WriteLog } from '../base/log.ts';
import type { Fact } from '../domain/facts.ts';
import type { ClusterStatus } from './cluster/cluster-status.ts';
import type { DerivedRows } from './derived/derived-rows.ts';
import type { IndexLedger } from './ledger/index-ledger.ts';
import type { MirrorLedger } from './ledger/mirror-ledger.ts';
import type { WebhookDeliveries } from './ledger/webhook-deliveries.ts';
import type { ChangeReads } from './query/change-reads.ts';
import type { Exporter } from './query/export.ts';
import type { MessageReads } from './query/message-reads.ts';
import type { StatisticsReads } from './query/statistics-reads.ts';
import type { ReadObserver, ReplicaStatus } from './reads/reads.ts';
import type { MigrationReport } from './schema/migrate.ts';
import type { SchemaPolicy, StoreContent } from './schema/preparation.ts';
import type { ServerSettings } from './server/server-settings.ts';
import type { ApplyReport } from './write/apply.ts';
import type { OrphanedBlock } from './write/lane-facts.ts';

/** Where the data is: an embedded database in a folder, or a server by URL. */
export type DatabasePlace = { readonly dataFolder: string } | { readonly url: string };

export interface StoreOptions {
  readonly place: DatabasePlace;
  /** URLs of streaming replicas of the server at `place`; reads go to those that have caught up. */
  readonly replicas?: readonly string[];
  readonly content?: StoreContent;
  /** With `write`, a database role that may only read is refused. */
  readonly access?: 'read' | 'write';
  readonly schema?: SchemaPolicy;
  /** False, for tests and benchmarks: pages are made of the driver's own rows instead of raw rows. */
  readonly rawRows?: boolean;
  /** The most connections for reads; by default as in `wholeProcess`. */
  readonly connections?: number;
  /** How many worker processes this one starts; refused where the server has no room for their connections. */
  readonly startsProcesses?: number;
  /** This process is one of so many worker processes. */
  readonly isOneOf?: number;
  readonly writeLog?: WriteLog;
  readonly signal?: AbortSignal;
}

/** Connections of one pool. */
export interface PoolStats {
  readonly pool: string;
  readonly total: number;
  readonly idle: number;
  /** How many callers wait for a connection. */
  readonly waiting: number;
}

export interface Store extends MessageReads, ChangeReads, StatisticsReads, Exporter {
  readonly simulated: boolean;
  readonly migrations: MigrationReport;
  readonly serverVersion: string;

  /** The one way in for facts; see `apply.ts`. */
  apply(facts: readonly Fact[], orphaned?: readonly OrphanedBlock[]): Promise<ApplyReport>;
  /** Checks and rebuilds the rows that are derived from records. */
  readonly derived: DerivedRows;
  /** The state of the indexer. */
  readonly index: IndexLedger;
  /** The state of mirrors. */
  readonly mirror: MirrorLedger;
  /** Cursors and queues of webhook subscriptions. */
  readonly webhooks: WebhookDeliveries;
  /** Lets another database role read all tables, now and after later migrations. */
  grantRead(role: string): Promise<void>;
  /** Settings of the server, as a session of a writer sees them. */
  serverSettings(): Promise<ServerSettings>;
  /** The state of the cluster; undefined for a store on one node. */
  cluster(): Promise<ClusterStatus | undefined>;
  pools(): readonly PoolStats[];
  /** The state of the replicas, in the order in which they were given. */
  replicas(): Promise<readonly ReplicaStatus[]>;
  /** Calls the observer after every read. Returns the function that removes it. */
  observeReads(observer: ReadObserver): () => void;
  /** Throws when the database does not answer. */
  ping(): Promise<void>;
  /** The time by the database's clock (ms since 1970), which all servers share. */
  clock(): Promise<number>;
  /** Empties a simulated store; refuses a real one. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

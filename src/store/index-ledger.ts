/**
 * How far chains have been read, what is owed, and who works on them.
 *
 * One step of a worker is one transaction: the facts of some blocks, the blocks themselves, the contracts that they
 * named and the ranges that are done become true together or not at all. The lease is checked in the same
 * transaction, so that a worker which was overtaken (it slept, say) cannot write any more.
 */
import type { ClientBase } from 'pg';
import type { Fact, RangeFact, Sent, SentMessage } from '../domain/facts.ts';
import { type ApplyReport, applyFacts } from './apply.ts';
import { rangesCovering } from './lane-facts.ts';
import { storedSelector } from './message-row.ts';
import { SchemaMovedError } from './writer-guard.ts';

export interface BlockId {
  readonly number: number;
  readonly hash: string;
}

export type RangePurpose = 'routers' | 'history' | 'contracts';

/** Blocks to read, both ends included. */
export interface BlockRange {
  readonly from: number;
  readonly to: number;
  readonly purpose: RangePurpose;
  /** Only logs of these contracts; null: of everybody. */
  readonly contracts: readonly string[] | null;
}

export interface OwedRange extends BlockRange {
  readonly id: string;
}

export interface FailedRange extends OwedRange {
  /** How often this very range could not be read; as part of a longer one counts once. */
  readonly failures: number;
  /** When its blocks could not be read for the first time, be it as part of a longer range. */
  readonly since: Date;
}

export interface NewFailure extends BlockRange {
  readonly reason: string;
  /** In milliseconds from now. */
  readonly retryIn: number;
  /** When it failed first, for a part of a range that is on the ledger already. */
  readonly since?: Date;
}

/** A contract that is believed; `body` is for whoever stores it. */
export interface NamedContract {
  readonly address: string;
  /** Null for a router of the configuration. */
  readonly namedBy: string | null;
  /** The block that named it, while it may be abandoned; null: for good. */
  readonly blockHash: string | null;
  readonly body: unknown;
}

export interface UnreadLog {
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly transactionHash: string;
  readonly logIndex: number;
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly reason: string;
}

export type ChoreKind = 'policy' | 'verification';

/** Something to ask on a network about one message that was sent to it. */
export interface Chore {
  /** 64 hexadecimal digits. */
  readonly messageId: string;
  readonly kind: ChoreKind;
  readonly attempts: number;
}

export interface IndexState {
  readonly startBlock: number | null;
  /** Where following the head began; null where nothing has been read. */
  readonly followedFrom: number | null;
  /** The earliest event of a router that was found so far. */
  readonly firstRouterBlock: number | null;
  /** By height; the last is the checkpoint. Empty where nothing has been read. */
  readonly blocks: readonly BlockId[];
  readonly contracts: readonly NamedContract[];
  readonly foreignLogs: number;
}

export interface HeadFigures {
  readonly headBlock: number;
  readonly headAt: number;
  readonly finalizedBlock: number;
  readonly indexedBlock: number;
  readonly indexedAt: number;
}

export interface OwedFigures {
  /** Blocks of history that are still to be read. */
  readonly owedBlocks: number;
  readonly failedRanges: number;
}

/** What becomes true in one transaction. */
export interface IndexStep {
  readonly facts?: readonly Fact[];
  /** Hashes of abandoned blocks: all that was seen in them is taken back. */
  readonly orphaned?: readonly string[];
  /** Blocks that were read and may still be abandoned. */
  readonly blocks?: readonly BlockId[];
  /** Blocks below this height are final and need not be remembered. */
  readonly forgetBelow?: number;
  readonly contracts?: readonly NamedContract[];
  /** The history that is wanted begins here: what is owed below is given up. */
  readonly startBlock?: number;
  readonly followedFrom?: number;
  /** A router spoke in this block; the earliest counts. */
  readonly routerBlock?: number;
  readonly owed?: readonly BlockRange[];
  /** A piece at the upper end of an owed range that has been read, or put on the ledger of failures. */
  readonly done?: { readonly id: string; readonly from: number };
  readonly failed?: readonly NewFailure[];
  /** Failed ranges that have been read, or were split. */
  readonly recovered?: readonly string[];
  readonly postponed?: readonly { readonly id: string; readonly reason: string; readonly retryIn: number }[];
  readonly unreadable?: readonly UnreadLog[];
  /** Blocks that were read: of what had not been understood in them, only `unreadable` is left. */
  readonly read?: BlockRange;
  /** Blocks with logs that were not understood are owed again: somebody who understands them may have come. */
  readonly rereadUnreadable?: boolean;
  /** How many logs of strangers were seen. */
  readonly foreign?: number;
  readonly choresDone?: readonly Chore[];
  /** Of messages whose sending was taken back; kept where it was told again meanwhile, by its own worker. */
  readonly choresMoot?: readonly Chore[];
  /** `dueIn` is in milliseconds from now. */
  readonly choresPostponed?: readonly (Chore & { readonly dueIn: number })[];
}

/** A committed message that nobody has executed. */
export interface AwaitingExecution {
  readonly messageId: string;
  readonly status: number;
  /** The commits (and blessings) that cover it. */
  readonly ranges: readonly RangeFact[];
}

export interface SentIn {
  /** 64 hexadecimal digits. */
  readonly messageId: string;
  readonly blockHash: string;
}

export interface IndexLedger {
  /** Takes the network, or keeps it; false while somebody else has it. Times are the database's. */
  lease(network: string, holder: string, seconds: number): Promise<boolean>;
  release(network: string, holder: string): Promise<void>;
  state(network: string): Promise<IndexState>;
  /** Throws a LeaseLost where `holder` does not have the network. */
  record(network: string, holder: string, step: IndexStep): Promise<ApplyReport>;
  /** The range to work on next: routers' history first, then the newest. */
  nextOwed(network: string): Promise<OwedRange | undefined>;
  /** Failed ranges whose time has come: those that failed least, then the longest due. What is hopeless can wait. */
  dueFailures(network: string, limit: number): Promise<readonly FailedRange[]>;
  /** The messages that were sent in these blocks. */
  sentIn(network: string, hashes: readonly string[]): Promise<readonly SentIn[]>;
  dueChores(network: string, kind: ChoreKind, limit: number): Promise<readonly Chore[]>;
  /** What was told of a message's sending; undefined where nobody has, or no longer. */
  sentFact(messageId: string): Promise<Sent | undefined>;
  /** Messages to this network that were committed, not executed and not opened, from the one after `after` (64 digits) on. */
  awaitingExecution(
    network: string,
    after: string | null,
    limit: number,
  ): Promise<readonly AwaitingExecution[]>;
  /** Where facts of a network were seen, from the highest block down, below `below`. */
  factBlocks(network: string, below: number, limit: number): Promise<readonly BlockId[]>;
  /** Tells the world how far the network is; what is owed is counted here, and answered. */
  tellProgress(network: string, figures: HeadFigures | null, problem: string | null): Promise<OwedFigures>;
}

/** Somebody else works on the network now. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}

/** Whether trying again is in vain: the network is somebody else's, or the schema is newer than this program. */
export function endsWork(error: unknown): boolean {
  return error instanceof LeaseLost || error instanceof SchemaMovedError;
}

type UseClient = <T>(use: (client: ClientBase) => Promise<T>) => Promise<T>;

/**
 * `withKeeper` is for what must not wait behind a long write: a lease that is renewed too late is lost.
 */
export function createIndexLedger(
  withReader: UseClient,
  withWriter: UseClient,
  withKeeper: UseClient,
): IndexLedger {
  return {
    lease: (network, holder, seconds) =>
      withKeeper(async (client) => {
        const { rowCount } = await client.query(
          `insert into index_network (selector, holder, lease_until)
           values ($1, $2, now() + make_interval(secs => $3))
           on conflict (selector) do update set holder = excluded.holder, lease_until = excluded.lease_until
             where index_network.holder is null or index_network.holder = excluded.holder
                or index_network.lease_until < now()`,
          [storedSelector(network), holder, seconds],
        );
        return rowCount === 1;
      }),

    release: (network, holder) =>
      withKeeper(async (client) => {
        await client.query('update index_network set holder = null where selector = $1 and holder = $2', [
          storedSelector(network),
          holder,
        ]);
      }),

    state: (network) => withReader((client) => readState(client, storedSelector(network))),

    record: (network, holder, step) =>
      withWriter(async (client) => {
        const orphaned = (step.orphaned ?? []).map((blockHash) => ({ network, blockHash }));
        // Before anything is taken back. Nobody else tells facts of the network while the lease holds.
        const bereft = await readBereft(client, network, step.orphaned ?? []);
        return applyFacts(client, step.facts ?? [], orphaned, () =>
          writeStep(client, storedSelector(network), holder, step, bereft),
        );
      }),

    nextOwed: (network) =>
      withReader(async (client) => {
        const { rows } = await client.query(
          `select ${RANGE} from index_backlog where network = $1
           order by purpose = 'routers' desc, to_block desc, id limit 1`,
          [storedSelector(network)],
        );
        return rows[0] && rangeOf(rows[0]);
      }),

    dueFailures: (network, limit) =>
      withReader(async (client) => {
        const { rows } = await client.query(
          `select ${RANGE}, failures, first_failed_at as since from index_failure where network = $1 and retry_at <= now()
           order by failures, retry_at, id limit $2`,
          [storedSelector(network), limit],
        );
        return rows.map((row) => ({ ...rangeOf(row), failures: row.failures, since: row.since }));
      }),

    sentIn: (network, hashes) =>
      withReader(async (client) => {
        const { rows } = await client.query(
          `select encode(message_id, 'hex') as "messageId", block_hash as "blockHash" from fact
           where network = $1 and block_hash = any($2) and body like '{"kind":"Sent"%' order by message_id`,
          [storedSelector(network), hashes],
        );
        return rows;
      }),

    dueChores: (network, kind, limit) =>
      withReader(async (client) => {
        const { rows } = await client.query(
          `select encode(message_id, 'hex') as "messageId", kind, attempts from index_chore
           where network = $1 and kind = $2 and due_at <= now() order by due_at, message_id limit $3`,
          [storedSelector(network), kind, limit],
        );
        return rows;
      }),

    sentFact: (messageId) =>
      withReader(async (client) => {
        const { rows } = await client.query(
          `select body from fact where message_id = $1 and body like '{"kind":"Sent"%'`,
          [Buffer.from(messageId, 'hex')],
        );
        const told = rows.map((row) => JSON.parse(row.body) as Sent);
        return told.sort((a, b) => b.seen.blockNumber - a.seen.blockNumber)[0];
      }),

    awaitingExecution: (network, after, limit) =>
      withReader((client) => readAwaiting(client, storedSelector(network), after, limit)),

    factBlocks: (network, below, limit) =>
      withReader(async (client) => {
        const { rows } = await client.query(
          `select distinct number, hash from (
             select (body::json -> 'seen' ->> 'blockNumber')::bigint as number, block_hash as hash
               from fact where network = $1
             union all
             select (body::json -> 'seen' ->> 'blockNumber')::bigint, block_hash
               from lane_fact where network = $1
             union all
             select (body::json -> 'seen' ->> 'blockNumber')::bigint, block_hash
               from root_blessing where network = $1) seen
           where number < $2 order by number desc, hash limit $3`,
          [storedSelector(network), below, limit],
        );
        return rows.map((row) => ({ number: Number(row.number), hash: row.hash }));
      }),

    tellProgress: (network, figures, problem) =>
      withKeeper((client) => writeProgress(client, storedSelector(network), figures, problem)),
  };
}

const RANGE = 'id, from_block, to_block, purpose, contracts';

function rangeOf(row: Record<string, unknown>): OwedRange {
  return {
    id: row.id as string,
    from: Number(row.from_block),
    to: Number(row.to_block),
    purpose: row.purpose as RangePurpose,
    contracts: row.contracts as readonly string[] | null,
  };
}

async function readState(client: ClientBase, network: string): Promise<IndexState> {
  const [known, blocks, contracts] = [
    await client.query(
      'select start_block, followed_from, first_router_block, foreign_logs from index_network where selector = $1',
      [network],
    ),
    await client.query('select number, hash from index_block where network = $1 order by number', [network]),
    await client.query(
      'select address, named_by, block_hash, body from index_contract where network = $1 order by address',
      [network],
    ),
  ];
  const block = (column: string) => {
    const value = known.rows[0]?.[column];
    return value == null ? null : Number(value);
  };
  return {
    startBlock: block('start_block'),
    followedFrom: block('followed_from'),
    firstRouterBlock: block('first_router_block'),
    foreignLogs: Number(known.rows[0]?.foreign_logs ?? 0),
    blocks: blocks.rows.map((row) => ({ number: Number(row.number), hash: row.hash })),
    contracts: contracts.rows.map((row) => ({
      address: row.address,
      namedBy: row.named_by,
      blockHash: row.block_hash,
      body: JSON.parse(row.body),
    })),
  };
}

async function writeStep(
  client: ClientBase,
  network: string,
  holder: string,
  step: IndexStep,
  bereft: readonly Sent[],
): Promise<void> {
  // The row lock keeps the lease until the commit: nobody takes the network in the middle of a step.
  const { rowCount } = await client.query(
    `update index_network
     set start_block = coalesce($3, start_block), followed_from = coalesce(followed_from, $4),
         first_router_block = least(first_router_block, $5), foreign_logs = foreign_logs + $6
     where selector = $1 and holder = $2 and lease_until > now()`,
    [
      network,
      holder,
      step.startBlock ?? null,
      step.followedFrom ?? null,
      step.routerBlock ?? null,
      step.foreign ?? 0,
    ],
  );
  if (rowCount !== 1) throw new LeaseLost('Another indexer works on this network now');

  await writeBlocks(client, network, step);
  await writeContracts(client, network, step.contracts ?? []);
  await writeRanges(client, network, step);
  await writeUnreadable(client, network, step);
  await writeChores(client, network, step, bereft);
}

async function writeBlocks(client: ClientBase, network: string, step: IndexStep): Promise<void> {
  const { orphaned = [], blocks = [], forgetBelow } = step;
  if (orphaned.length > 0) {
    for (const table of ['index_block', 'index_contract', 'index_unreadable']) {
      const column = table === 'index_block' ? 'hash' : 'block_hash';
      await client.query(`delete from ${table} where network = $1 and ${column} = any($2)`, [
        network,
        orphaned,
      ]);
    }
  }
  if (blocks.length > 0) {
    await client.query(
      `insert into index_block (network, number, hash) select $1, * from unnest($2::bigint[], $3::text[])
       on conflict (network, number) do update set hash = excluded.hash`,
      [network, blocks.map(({ number }) => number), blocks.map(({ hash }) => hash)],
    );
  }
  if (forgetBelow !== undefined) {
    await client.query(
      `update index_contract set block_hash = null
       where network = $1 and block_hash in (select hash from index_block where network = $1 and number < $2)`,
      [network, forgetBelow],
    );
    await client.query('delete from index_block where network = $1 and number < $2', [network, forgetBelow]);
  }
}

async function writeContracts(
  client: ClientBase,
  network: string,
  contracts: readonly NamedContract[],
): Promise<void> {
  if (contracts.length === 0) return;
  await client.query(
    `insert into index_contract (network, address, named_by, block_hash, body)
     select $1, * from unnest($2::text[], $3::text[], $4::text[], $5::text[])
     on conflict do nothing`,
    [
      network,
      contracts.map(({ address }) => address),
      contracts.map(({ namedBy }) => namedBy),
      contracts.map(({ blockHash }) => blockHash),
      contracts.map(({ body }) => JSON.stringify(body)),
    ],
  );
}

async function writeRanges(client: ClientBase, network: string, step: IndexStep): Promise<void> {
  const { startBlock, owed = [], done, failed = [], recovered = [], postponed = [] } = step;
  if (startBlock !== undefined) {
    const history = `network = $1 and purpose = 'history'`;
    await client.query(`delete from index_backlog where ${history} and to_block < $2`, [network, startBlock]);
    await client.query(`update index_backlog set from_block = $2 where ${history} and from_block < $2`, [
      network,
      startBlock,
    ]);
  }
  for (const range of owed) {
    await client.query(
      `insert into index_backlog (network, from_block, to_block, purpose, contracts) values ($1, $2, $3, $4, $5)`,
      [network, range.from, range.to, range.purpose, range.contracts],
    );
  }
  if (done) {
    await client.query('delete from index_backlog where network = $1 and id = $2 and from_block >= $3', [
      network,
      done.id,
      done.from,
    ]);
    await client.query('update index_backlog set to_block = $3 where network = $1 and id = $2', [
      network,
      done.id,
      done.from - 1,
    ]);
  }
  for (const range of failed) {
    await client.query(
      `insert into index_failure
         (network, from_block, to_block, purpose, contracts, reason, retry_at, first_failed_at)
       values ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7 / 1000.0), coalesce($8, now()))`,
      [
        network,
        range.from,
        range.to,
        range.purpose,
        range.contracts,
        range.reason,
        range.retryIn,
        range.since ?? null,
      ],
    );
  }
  if (recovered.length > 0) {
    await client.query('delete from index_failure where network = $1 and id = any($2)', [network, recovered]);
  }
  for (const { id, reason, retryIn } of postponed) {
    await client.query(
      `update index_failure set failures = failures + 1, reason = $3, retry_at = now() + make_interval(secs => $4 / 1000.0)
       where network = $1 and id = $2`,
      [network, id, reason, retryIn],
    );
  }
}

async function writeUnreadable(
  client: ClientBase,
  network: string,
  { unreadable = [], read, rereadUnreadable }: IndexStep,
): Promise<void> {
  if (rereadUnreadable) {
    // None twice: what an earlier start has asked for may still be owed.
    await client.query(
      `insert into index_backlog (network, from_block, to_block, purpose, contracts)
       select $1, block_number, block_number, 'contracts', array_agg(distinct address)
       from index_unreadable u
       where network = $1 and not exists (
         select from (select network, from_block, to_block, contracts from index_backlog
                      union all select network, from_block, to_block, contracts from index_failure) owed
         where network = $1 and u.block_number between from_block and to_block
           and (contracts is null or u.address = any(contracts)))
       group by block_number`,
      [network],
    );
  }
  if (read) {
    await client.query(
      `delete from index_unreadable
       where network = $1 and block_number between $2 and $3 and ($4::text[] is null or address = any($4))
         and (block_hash, log_index) not in (select * from unnest($5::text[], $6::integer[]))`,
      [
        network,
        read.from,
        read.to,
        read.contracts,
        unreadable.map(({ blockHash }) => blockHash),
        unreadable.map(({ logIndex }) => logIndex),
      ],
    );
  }
  for (const log of unreadable) {
    await client.query(
      `insert into index_unreadable
         (network, block_hash, log_index, block_number, transaction_hash, address, topics, data, reason)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
       on conflict (network, block_hash, log_index) do update set reason = excluded.reason`,
      [
        network,
        log.blockHash,
        log.logIndex,
        log.blockNumber,
        log.transactionHash,
        log.address,
        log.topics,
        log.data,
        log.reason,
      ],
    );
  }
}

/** Messages to the network about which something was told in these blocks, be it in answer to a question of ours. */
async function readBereft(
  client: ClientBase,
  network: string,
  orphaned: readonly string[],
): Promise<readonly Sent[]> {
  if (orphaned.length === 0) return [];
  const { rows } = await client.query(
    `select distinct sent.body from fact gone join fact sent on sent.message_id = gone.message_id
     where gone.network = $1 and gone.block_hash = any($2) and sent.body like '{"kind":"Sent"%'`,
    [storedSelector(network), orphaned],
  );
  return rows
    .map((row) => JSON.parse(row.body) as Sent)
    .filter(({ message }) => message.destNetworkInfo.chainSelector === network);
}

/** Messages of verifier lanes have questions for their destination, which its own worker asks. */
async function writeChores(
  client: ClientBase,
  network: string,
  step: IndexStep,
  bereft: readonly Sent[],
): Promise<void> {
  const { facts = [], choresDone = [], choresMoot = [], choresPostponed = [] } = step;
  const sent = [...facts.filter((fact) => fact.kind === 'Sent'), ...bereft].filter(
    ({ execution }) => execution !== undefined && 'encodedMessage' in execution,
  );
  if (sent.length > 0) {
    // Nobody needs to ask what is known. Execution tells the verifications too.
    await client.query(
      `insert into index_chore (message_id, network, kind)
       select id, dest, kind from unnest($1::bytea[], $2::bigint[]) as sent (id, dest),
         (values ('policy', 'VerifierPolicy'), ('verification', 'Executed')) as question (kind, answer)
       where not exists (
         select from fact where message_id = id and body like '{"kind":"' || answer || '"%')
       on conflict do nothing`,
      [
        sent.map(({ message }) => Buffer.from(message.messageId.slice(2), 'hex')),
        sent.map(({ message }) => storedSelector(message.destNetworkInfo.chainSelector)),
      ],
    );
  }
  const executed = facts.filter((fact) => fact.kind === 'Executed');
  if (executed.length > 0) {
    await client.query(
      `delete from index_chore where message_id = any($1) and network = $2 and kind = 'verification'`,
      [executed.map(({ messageId }) => Buffer.from(messageId.slice(2), 'hex')), network],
    );
  }
  const endChores = async (chores: readonly Chore[], condition = 'true') => {
    for (const { messageId, kind } of chores) {
      await client.query(
        `delete from index_chore c where message_id = $1 and network = $2 and kind = $3 and ${condition}`,
        [Buffer.from(messageId, 'hex'), network, kind],
      );
    }
  };
  await endChores(choresDone);
  await endChores(
    choresMoot,
    `not exists (select from fact where message_id = c.message_id and body like '{"kind":"Sent"%')`,
  );
  for (const { messageId, kind, dueIn } of choresPostponed) {
    await client.query(
      `update index_chore set attempts = attempts + 1, due_at = now() + make_interval(secs => $4 / 1000.0)
       where message_id = $1 and network = $2 and kind = $3`,
      [Buffer.from(messageId, 'hex'), network, kind, dueIn],
    );
  }
}

async function readAwaiting(
  client: ClientBase,
  network: string,
  after: string | null,
  limit: number,
): Promise<readonly AwaitingExecution[]> {
  const { rows } = await client.query(
    `select encode(message_id, 'hex') as id, status, record from message
     where dest_selector = $1 and status in (2, 3) and not ready and message_id > $2
     order by message_id limit $3`,
    [network, Buffer.from(after ?? '', 'hex'), limit],
  );
  const covering = await rangesCovering(
    async (text, values) => (await client.query(text, [...values])).rows,
    rows.map((row) => JSON.parse(row.record) as SentMessage),
  );
  return rows.map((row, index) => ({
    messageId: row.id,
    status: row.status,
    ranges: covering.get(index) ?? [],
  }));
}

async function writeProgress(
  client: ClientBase,
  network: string,
  figures: HeadFigures | null,
  problem: string | null,
): Promise<OwedFigures> {
  const at = (time: number | undefined) => (time === undefined ? null : new Date(time));
  const { rows } = await client.query(
    `insert into network_progress
       (selector, head_block, head_at, finalized_block, indexed_block, indexed_at, updated_at, problem,
        start_block, owed_blocks, failed_ranges, failed_blocks, oldest_failure_at, unreadable_logs, foreign_logs)
     select $1, $2, $3, $4, $5, $6, now(), $7, n.start_block, owed.blocks, failed.ranges, failed.blocks,
            failed.oldest, unreadable.logs, coalesce(n.foreign_logs, 0)
     from (select coalesce(sum(to_block - from_block + 1), 0) as blocks
           from index_backlog where network = $1 and purpose = 'history') owed,
          (select count(*) as ranges, coalesce(sum(to_block - from_block + 1), 0) as blocks,
                  min(first_failed_at) as oldest from index_failure where network = $1) failed,
          (select count(*) as logs from index_unreadable where network = $1) unreadable
          left join index_network n on n.selector = $1
     on conflict (selector) do update set
       head_block = coalesce(excluded.head_block, network_progress.head_block),
       head_at = coalesce(excluded.head_at, network_progress.head_at),
       finalized_block = coalesce(excluded.finalized_block, network_progress.finalized_block),
       indexed_block = coalesce(excluded.indexed_block, network_progress.indexed_block),
       indexed_at = coalesce(excluded.indexed_at, network_progress.indexed_at),
       updated_at = excluded.updated_at, problem = excluded.problem, start_block = excluded.start_block,
       owed_blocks = excluded.owed_blocks, failed_ranges = excluded.failed_ranges,
       failed_blocks = excluded.failed_blocks, oldest_failure_at = excluded.oldest_failure_at,
       unreadable_logs = excluded.unreadable_logs, foreign_logs = excluded.foreign_logs
     returning owed_blocks, failed_ranges`,
    [
      network,
      figures?.headBlock ?? null,
      at(figures?.headAt),
      figures?.finalizedBlock ?? null,
      figures?.indexedBlock ?? null,
      at(figures?.indexedAt),
      problem,
    ],
  );
  return { owedBlocks: Number(rows[0].owed_blocks), failedRanges: Number(rows[0].failed_ranges) };
}

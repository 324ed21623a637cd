/** The same pages from Lanescan, PostGraphile and an ORM-style server on the same database, each in one process. */
import { fileURLToPath } from 'node:url';
import type { CursorCodec } from '../../src/domain/filters/cursor.ts';
import type { PageKey } from '../../src/domain/filters/query.ts';
import { parseSearch } from '../../src/domain/filters/search-parameters.ts';
import { storedSelector } from '../../src/store/write/message-row.ts';
import { type BenchDatabase, withClient } from '../data/database.ts';
import { lanes, type World } from '../data/world.ts';
import { interleave, ratioOf, type Standing } from '../interleave.ts';
import type { PlainRequest } from '../load/client.ts';
import { noteLeftOut } from '../report.ts';
import { readWorkloads } from '../requests.ts';
import type { Rig } from '../rig.ts';
import { type RunningServer, startLanescan, startServer } from '../server.ts';
import { loadTurn, warmUp } from './measure-searches.ts';

const LIMIT = 20;
const REQUESTS = 5_000;
const COMPARED = 5;

/** As data: which pages of what. */
interface PeerWorkload {
  readonly name: string;
  readonly of: 'newest' | 'lane' | 'sender';
  readonly fromPage: number;
  readonly toPage: number;
  /** PostGraphile is left out where its cursor makes depth free. */
  readonly peers: readonly PeerName[];
}

type PeerName = 'PostGraphile' | 'ORM-style';

export interface PeersResult {
  readonly workload: string;
  readonly size: number;
  readonly standings: readonly Standing[];
  readonly ratios: Readonly<Record<string, number>>;
}

/** One page, said in three ways. */
interface PageRequest {
  readonly filters: Readonly<Record<string, string>>;
  readonly page: number;
  readonly after: PageKey | null;
}

const folder = fileURLToPath(new URL('../peers/', import.meta.url));

/** What the peers' queries need: the indexes that an application on plain columns would have. */
const peerIndexes = {
  peer_newest: '(sent_at, message_id)',
  peer_sender: '(sender, sent_at, message_id)',
  peer_lane: '(source_selector, dest_selector, sent_at, message_id)',
};

export async function measurePeers(rig: Rig, database: BenchDatabase): Promise<PeersResult[]> {
  return withClient(database.url, async (client) => {
    for (const [name, columns] of Object.entries(peerIndexes))
      await client.query(`create index if not exists ${name} on message ${columns}`);
    await client.query('analyze message');
    try {
      return await measureBesideThem(rig, database);
    } finally {
      for (const name of Object.keys(peerIndexes)) await client.query(`drop index ${name}`);
    }
  });
}

async function measureBesideThem(rig: Rig, database: BenchDatabase): Promise<PeersResult[]> {
  const start = (file: string) =>
    startServer({
      command: process.execPath,
      args: (port) => [`${folder}${file}`, String(port)],
      env: { DATABASE_URL: database.url, NODE_ENV: 'production' },
      log: rig.logFile(file),
      probe: '/ready',
    });
  const peers: Record<PeerName, RunningServer> = {
    PostGraphile: await start('postgraphile-server.mjs'),
    'ORM-style': await start('orm-server.mjs'),
  };
  const server = await startLanescan({
    url: database.url,
    log: rig.logFile('serve-beside-peers'),
    processes: 1,
  });
  try {
    await warmUp(rig, server.port, database, 1);
    const results: PeersResult[] = [];
    for (const workload of readWorkloads<PeerWorkload[]>('peers')) {
      if (workload.toPage * LIMIT > database.size / 2) {
        noteLeftOut(workload.name, database.size);
        continue;
      }
      results.push(await measureOne(rig, server, peers, database, workload));
    }
    return results;
  } finally {
    await Promise.all([server, ...Object.values(peers)].map((peer) => peer.stop()));
  }
}

async function measureOne(
  rig: Rig,
  server: RunningServer,
  peers: Record<PeerName, RunningServer>,
  database: BenchDatabase,
  workload: PeerWorkload,
): Promise<PeersResult> {
  const pages = drawPages(workload, database.world);
  const contestants = [
    { name: 'lanescan', server, requests: pages.map((page) => ourRequest(page, database.cursors)) },
    ...workload.peers.map((name) => ({
      name,
      server: peers[name],
      requests: pages.map(name === 'ORM-style' ? ormRequest : postgraphileRequest),
    })),
  ];
  await compareAnswers(rig, contestants);
  const { connections, seconds, rounds } = rig.settings;
  const standings = await interleave(
    contestants.map(({ name, server: { port, pid }, requests }) => ({
      name,
      turn: async (round) => {
        const order = {
          port,
          requests,
          from: round * 500,
          connections,
          seconds,
          check: 'status',
          // Theirs keep no answers; ours must not profit from its own.
          isRespelled: name === 'lanescan',
        } as const;
        return (await loadTurn(rig, { server: { family: pid }, database: { family: rig.postmaster } }, order))
          .turn;
      },
    })),
    rounds,
  );
  const ours = standings.get('lanescan');
  return {
    workload: workload.name,
    size: database.size,
    standings: [...standings.values()],
    ratios: Object.fromEntries(
      workload.peers.map((name) => [name, ratioOf(ours, standings.get(name)) ?? Number.NaN]),
    ),
  };
}

/** A comparison means something only if all say the same. */
async function compareAnswers(
  rig: Rig,
  contestants: readonly { name: string; server: RunningServer; requests: readonly PlainRequest[] }[],
): Promise<void> {
  const answers = [];
  for (const { name, server, requests } of contestants) {
    const report = await rig.load.run({
      port: server.port,
      requests,
      from: 0,
      connections: 1,
      count: COMPARED,
      check: 'status',
      keepEvery: 1,
    });
    answers.push({ name, ids: report.kept.map(({ body }) => idsIn(body)) });
  }
  const [ours, ...others] = answers;
  for (const { name, ids } of others) {
    ids.forEach((list, index) => {
      if (list === '') throw new Error(`${name} has nothing on page ${index}; are there too few messages?`);
      if (list !== ours?.ids[index])
        throw new Error(`${name} answers page ${index} with ${list}, Lanescan with ${ours?.ids[index]}`);
    });
  }
}

/** The ids of an answer in any of the three shapes. */
function idsIn(body: string): string {
  return [...body.matchAll(/"messageId\\?":\\?"(?:0x|\\\\x)([0-9a-f]{64})/g)]
    .map(([, id]) => id)
    .filter((id, index, all) => id !== all[index - 1])
    .join();
}

// ---- Pages

function drawPages(workload: PeerWorkload, world: World): PageRequest[] {
  const span = workload.toPage - workload.fromPage + 1;
  const keys = keysOf(workload, world);
  return Array.from({ length: REQUESTS }, (_, index) => {
    const page = workload.fromPage + ((index * 7) % span);
    const lane = index % keys.length;
    const filters: Record<string, string> = {};
    if (workload.of === 'sender') filters.sender = world.ordinarySender(index % world.ordinarySenders);
    if (workload.of === 'lane') {
      filters.sourceChainSelector = lanes[lane]?.source.chainSelector ?? '';
      filters.destChainSelector = lanes[lane]?.dest.chainSelector ?? '';
    }
    const after = page === 1 ? null : keys[lane]?.((page - 1) * LIMIT - 1);
    if (after === undefined) throw new Error(`${workload.name} has no page ${page}`);
    return { filters, page, after };
  });
}

/** For each lane (or for all messages as one): the key of its message at an offset from the newest. */
function keysOf(workload: PeerWorkload, world: World): readonly ((offset: number) => PageKey | undefined)[] {
  const keyAt = (n: number): PageKey => {
    const { sentAtMs, messageId } = world.envelope(n);
    return { sentAt: sentAtMs, messageId: messageId.slice(2) };
  };
  // No two messages of the sizes in use are of the same second: the newest is the last.
  if (workload.of !== 'lane') return [(offset) => keyAt(world.size - 1 - offset)];
  const found: number[][] = [[], [], []];
  for (let n = world.size - 1; n >= 0 && found.some((list) => list.length < workload.toPage * LIMIT); n--) {
    found[world.envelope(n).lane]?.push(n);
  }
  return found.map((list) => (offset) => keyAt(list[offset] ?? 0));
}

function ourRequest({ filters, after }: PageRequest, cursors: CursorCodec): PlainRequest {
  if (after === null)
    return { path: `/v2/messages?${new URLSearchParams({ ...filters, limit: String(LIMIT) })}` };
  const search = parseSearch(Object.entries(filters));
  const cursor = cursors.encode({ filters: search.filters, view: 'full', after });
  return { path: `/v2/messages?${new URLSearchParams({ cursor, limit: String(LIMIT) })}` };
}

function ormRequest({ filters, page }: PageRequest): PlainRequest {
  return {
    path: `/messages?${new URLSearchParams({ ...filters, page: String(page), limit: String(LIMIT) })}`,
  };
}

const QUERY = `query ($first: Int, $after: Cursor, $condition: MessageCondition) {
  allMessages(first: $first, after: $after, condition: $condition, orderBy: [SENT_AT_DESC, MESSAGE_ID_DESC]) {
    nodes { record }
    pageInfo { hasNextPage endCursor }
  }
}`;

/** A cursor as PostGraphile makes them: the order's name and the key. */
function postgraphileRequest({ filters, after }: PageRequest): PlainRequest {
  const { sender, sourceChainSelector, destChainSelector } = filters;
  const condition = {
    ...(sender !== undefined && { sender: `\\x${sender.slice(2)}` }),
    ...(sourceChainSelector !== undefined && { sourceSelector: storedSelector(sourceChainSelector) }),
    ...(destChainSelector !== undefined && { destSelector: storedSelector(destChainSelector) }),
  };
  const cursor = after && [
    'sent_at_desc',
    'message_id_desc',
    [new Date(after.sentAt).toISOString(), `\\x${after.messageId}`],
  ];
  const variables = {
    first: LIMIT,
    condition,
    ...(cursor && { after: Buffer.from(JSON.stringify(cursor)).toString('base64') }),
  };
  return { path: '/graphql', body: JSON.stringify({ query: QUERY, variables }) };
}

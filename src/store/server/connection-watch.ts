/**
 * Watchdog for database connections that die silently.
 *
 * A firewall that forgets a connection, or a cable that is pulled, sends no FIN and no RST: a statement on that connection
 * would wait until the kernel gives up, a quarter of an hour or more. A limit on the total time of a statement does not
 * help writers, because a migration or a COPY may rightly take long. So the watchdog looks for progress instead.
 *
 * A connection is suspect when a statement waits on it and no byte has moved in either direction for `SILENCE_MS`. A probe
 * then asks the server, over a new connection, whether it works on that statement. If it does, the wait goes on. If it does
 * not, and does not at the next probe either, the response was lost: the connection is destroyed, its session on the server
 * is ended (it may hold the writers' lock), and so are idle connections from before the silence. One probe alone proves
 * nothing: on a busy machine the response may be here and not yet read. If the probe fails, the connection is destroyed
 * after `UNREACHABLE_TIMEOUT_MS`.
 */
import type pg from 'pg';
import { readSessionsOnWorkers } from '../cluster/workers.ts';
import { WatchedClient } from './client.ts';

const SILENCE_MS = 1_500;
const CHECK_INTERVAL_MS = 500;
/** Probes in a row that find the server idle. */
const PROBES_OF_LOSS = 2;
const UNREACHABLE_TIMEOUT_MS = 30_000;
/** Of the probe: for its connect, and for each of its queries. */
const PROBE_TIMEOUT_MS = 3_000;
/** SQLSTATE of a connection failure: callers treat it as one that the server reported. */
const CONNECTION_FAILURE = '08006';

export type ConnectionWatch = ReturnType<typeof createConnectionWatch>;

interface Observation {
  progress: number;
  /** When bytes moved last, to the precision of `CHECK_INTERVAL_MS`. */
  movedAt: number;
  /** Since when a statement has waited without progress. */
  silentSince: number;
  probeAt: number;
  /** Probes of this silence that found the server idle. */
  idleProbes: number;
  /** Checked out of the pool, perhaps in a transaction, though no statement waits. */
  isLent: boolean;
}

/** What is observed of a wait that begins now. */
const silenceFrom = (now: number) => ({ silentSince: now, probeAt: now + SILENCE_MS, idleProbes: 0 });

/** Watches connections to the one server that `connection` leads to. */
export function createConnectionWatch(connection: pg.ClientConfig, writeLog: (line: string) => void) {
  const watched = new Map<WatchedClient, Observation>();
  let isProbing = false;

  const add = (client: WatchedClient) => {
    const now = performance.now();
    watched.set(client, { ...silenceFrom(now), progress: client.progress, movedAt: now, isLent: true });
    client.once('end', () => watched.delete(client));
  };

  const isSilent = (client: WatchedClient, seen: Observation) =>
    client.isWaiting && client.progress === seen.progress;

  const check = () => {
    const now = performance.now();
    const suspects: WatchedClient[] = [];
    for (const [client, seen] of watched) {
      const { progress } = client;
      if (progress !== seen.progress) seen.movedAt = now;
      if (isSilent(client, seen)) {
        if (now >= seen.probeAt) suspects.push(client);
        continue;
      }
      Object.assign(seen, silenceFrom(now), { progress });
    }
    if (suspects.length === 0 || isProbing) return;
    isProbing = true;
    void probeServer(suspects).finally(() => {
      isProbing = false;
    });
  };

  const probeServer = async (suspects: readonly WatchedClient[]): Promise<void> => {
    const probe = new WatchedClient({
      ...connection,
      application_name: 'lanescan watchdog',
      connectionTimeoutMillis: PROBE_TIMEOUT_MS,
      query_timeout: PROBE_TIMEOUT_MS,
    });
    probe.on('error', () => undefined);
    try {
      await probe.connect();
      const working = await workingSessions(probe, suspects);
      const lost = suspects.filter((client) => {
        const seen = watched.get(client);
        // The response may have arrived during the probe.
        if (!seen || !isSilent(client, seen)) return false;
        const now = performance.now();
        if (!working.has(client.session)) {
          seen.idleProbes++;
          seen.probeAt = now + CHECK_INTERVAL_MS;
          return seen.idleProbes >= PROBES_OF_LOSS;
        }
        Object.assign(seen, silenceFrom(now));
        return false;
      });
      if (lost.length > 0) {
        giveUp(lost, 'the server has no answer on its way');
        await probe.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where pid = any($1) and application_name = 'lanescan'
           and usename = current_user and datname = current_database()`,
          [lost.map(({ session }) => session)],
        );
      }
    } catch {
      const now = performance.now();
      const late = suspects.filter((client) => {
        const seen = watched.get(client);
        return seen && isSilent(client, seen) && now - seen.silentSince >= UNREACHABLE_TIMEOUT_MS;
      });
      if (late.length > 0)
        giveUp(late, `no answer for ${UNREACHABLE_TIMEOUT_MS / 1_000} s, and the server is out of reach`);
    } finally {
      await probe.end().catch(() => undefined);
    }
  };

  const giveUp = (lost: readonly WatchedClient[], because: string) => {
    const since = Math.min(...lost.map((client) => watched.get(client)?.silentSince ?? 0));
    const idle = [...watched].filter(
      // Bytes that moved just before the silence began may have been noticed by the check after it.
      ([client, seen]) => !client.isWaiting && !seen.isLent && seen.movedAt < since + 2 * CHECK_INTERVAL_MS,
    );
    const error = Object.assign(new Error(`The database connection is lost: ${because}`), {
      code: CONNECTION_FAILURE,
    });
    const all = [...lost, ...idle.map(([client]) => client)];
    for (const client of all) client.socket.destroy(error);
    writeLog(`Replacing ${all.length} database connection(s) that died without being closed: ${because}`);
  };

  const checking = setInterval(check, CHECK_INTERVAL_MS).unref();
  return {
    /** Watches every connection that this pool opens from now on, until it is closed. */
    addPool(pool: pg.Pool) {
      const lend = (client: pg.PoolClient, isLent: boolean) => {
        const seen = watched.get(client as unknown as WatchedClient);
        if (seen) seen.isLent = isLent;
      };
      pool.on('connect', (client) => add(client as unknown as WatchedClient));
      pool.on('acquire', (client) => lend(client, true));
      pool.on('release', (_error, client) => lend(client, false));
    },
    /** Destroys the sockets of all open connections; returns their number. */
    destroyAll() {
      const open = [...watched.keys()];
      for (const client of open) client.socket.destroy();
      return open.length;
    },
    close: () => clearInterval(checking),
  };
}

/**
 * Which of these sessions the server works on. A session that waits for its client does not: whatever the client sent is
 * lost. One that waits for workers of a cluster looks the same, so the workers are asked. Where the server does not say what
 * a session does, it counts as working.
 */
async function workingSessions(client: pg.ClientBase, suspects: readonly WatchedClient[]) {
  const { rows } = await client.query(
    `select pid, state is distinct from 'active' or wait_event_type is distinct from 'Client' as "isWorking"
     from pg_stat_activity where pid = any($1) and coalesce(state, 'disabled') in ('disabled', 'active')`,
    [suspects.map(({ session }) => session)],
  );
  const working = rows.filter(({ isWorking }) => isWorking);
  const waiting = rows.filter(({ isWorking }) => !isWorking).map(({ pid }) => pid);
  const onWorkers = waiting.length === 0 ? [] : await readSessionsOnWorkers(client, waiting);
  return new Set<number>([...working.map(({ pid }) => pid), ...onWorkers]);
}

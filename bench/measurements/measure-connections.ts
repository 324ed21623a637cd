/** More clients at once: the same distinct searches over more and more connections. */
import type { BenchDatabase } from '../data/database.ts';
import { interleave, type Standing } from '../interleave.ts';
import { drawRequests, plainRequest } from '../requests.ts';
import type { Rig } from '../rig.ts';
import type { RunningServer } from '../server.ts';
import { loadTurn } from './measure-searches.ts';

const CONNECTIONS = [1, 8, 32, 128, 512];
/** More than are answered in a second. */
const DISTINCT_A_SECOND = 4_000;

export interface ConnectionsResult {
  readonly size: number;
  /** By number of connections. */
  readonly standings: readonly Standing[];
}

export async function measureConnections(
  rig: Rig,
  server: RunningServer,
  database: BenchDatabase,
): Promise<ConnectionsResult> {
  const { seconds, rounds } = rig.settings;
  const perTurn = Math.ceil(DISTINCT_A_SECOND * seconds);
  const turns = CONNECTIONS.length * (rounds + 1);
  const requests = drawRequests({ name: 'newest page', start: 'anywhere' }, database, perTurn * turns).map(
    plainRequest,
  );
  let turn = 0;
  const standings = await interleave(
    CONNECTIONS.map((connections) => ({
      name: String(connections),
      async turn() {
        const from = perTurn * turn++;
        const report = await loadTurn(
          rig,
          { server: { family: server.pid }, database: { family: rig.postmaster } },
          {
            port: server.port,
            requests: requests.slice(from, from + perTurn),
            from: 0,
            connections,
            seconds,
            check: 'page',
          },
        );
        return report.turn;
      },
    })),
    rounds,
  );
  return { size: database.size, standings: [...standings.values()] };
}

/** Whether both servers give the same answers to the same searches, byte by byte, page after page. */
import type { Message } from '../../src/domain/message.ts';
import type { BenchDatabase } from '../data/database.ts';
import {
  type Combinations,
  createRequestSource,
  drawCombinations,
  readWorkloads,
  type Workload,
} from '../requests.ts';

export interface Ports {
  readonly single: number;
  readonly cluster: number;
}

export interface EqualityResult {
  readonly combinations: number;
  readonly workloadRequests: number;
  readonly pages: number;
  readonly records: number;
  /** What differs, in words. */
  readonly differences: readonly string[];
}

interface Page {
  readonly data: readonly Message[];
  readonly pagination: { readonly hasNextPage: boolean; readonly cursor: string | null };
}

const PAGES_A_WALK = 5;
const REQUESTS_A_WORKLOAD = 40;

export async function compareAnswers(ports: Ports, database: BenchDatabase): Promise<EqualityResult> {
  let [pages, records] = [0, 0];
  const differences: string[] = [];

  /** The next path of the walk; null at its end or at a difference. */
  const comparePage = async (path: string): Promise<string | null> => {
    const [single, cluster] = await Promise.all([get(ports.single, path), get(ports.cluster, path)]);
    pages++;
    if (single !== cluster) {
      differences.push(describeDifference(path, single, cluster));
      return null;
    }
    const { data = [], pagination } = JSON.parse(single) as Partial<Page>;
    records += pagination === undefined ? 1 : data.length;
    if (!pagination?.cursor) return null;
    return `/v2/messages?${new URLSearchParams({ cursor: pagination.cursor })}`;
  };

  const combinations = drawCombinations(readWorkloads<Combinations>('combinations'), database.world);
  for (const { raw } of combinations) {
    let path: string | null = `/v2/messages?${new URLSearchParams(Object.fromEntries(raw))}`;
    for (let page = 0; page < PAGES_A_WALK && path !== null; page++) path = await comparePage(path);
  }
  const requests = readWorkloads<Workload[]>('searches').flatMap((workload) =>
    createRequestSource(workload, database).take(REQUESTS_A_WORKLOAD),
  );
  for (const { path } of requests) await comparePage(path);
  return {
    combinations: combinations.length,
    workloadRequests: requests.length,
    pages,
    records,
    differences,
  };
}

async function get(port: number, path: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  const body = await response.text();
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${body.slice(0, 500)}`);
  return body;
}

function describeDifference(path: string, single: string, cluster: string): string {
  const [one, other] = [single, cluster].map((body) => JSON.parse(body) as Partial<Page>);
  const ids = (page: Partial<Page> | undefined) => page?.data?.map(({ messageId }) => messageId) ?? [];
  const [expected, found] = [ids(one), ids(other)];
  const row = expected.findIndex((id, index) => id !== found[index]);
  return (
    `${path}: one node has ${expected.length} rows, the cluster ${found.length}; ` +
    `row ${row} is ${expected[row]} and ${found[row]}; next page ${one?.pagination?.hasNextPage} and ` +
    `${other?.pagination?.hasNextPage}`
  );
}

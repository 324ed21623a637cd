/** What PostgreSQL reads for a search, in rows and pages, by its own count. */
import type pg from 'pg';
import type { SearchQuery } from '../../src/domain/filters/query.ts';
import { searchSql } from '../../src/store/query/search.ts';
import { renderSql } from '../../src/store/sql.ts';
import { literal } from '../literal.ts';

interface Plan {
  readonly 'Node Type': string;
  readonly 'Index Name'?: string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly Plan[];
}

export interface Effort {
  /** Rows that scans touched, whether they were kept or not. */
  readonly rowsRead: number;
  /** Pages of 8 kB. They also show index entries that were skipped inside an index, which no row count does. */
  readonly pages: number;
  readonly rowsFound: number;
  readonly planningMs: number;
  readonly executionMs: number;
  readonly plan: string;
  /** True after the timeout: then there are no counts. */
  readonly isGivenUp: boolean;
}

const EXPLAIN_TIMEOUT_MS = 15_000;

/** By the plan that is kept for all values, as the server runs it: `client` must have the settings of the search. */
export async function explain(client: pg.ClientBase, search: SearchQuery): Promise<Effort> {
  const { text, values } = renderSql(searchSql(search));
  await client.query(`set statement_timeout = ${EXPLAIN_TIMEOUT_MS}`);
  try {
    await client.query(`deallocate all; prepare explained as ${text}`);
    const { rows } = await client.query(
      `explain (analyze, buffers, timing off, format json) execute explained (${values.map(literal).join()})`,
    );
    const [{ Plan: plan, 'Planning Time': planningMs, 'Execution Time': executionMs }] =
      rows[0]['QUERY PLAN'];
    const scans = nodesOf(plan).filter((node) => node['Node Type'].includes('Scan') && !node.Plans);
    return {
      rowsRead: Math.round(
        scans.reduce(
          (sum, node) =>
            sum +
            node['Actual Loops'] *
              (node['Actual Rows'] +
                (node['Rows Removed by Filter'] ?? 0) +
                (node['Rows Removed by Index Recheck'] ?? 0)),
          0,
        ),
      ),
      pages: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
      rowsFound: plan['Actual Rows'],
      planningMs,
      executionMs,
      plan: scans
        .map((node) => node['Index Name'] ?? `${node['Node Type']} ${node['Relation Name']}`)
        .join(', '),
      isGivenUp: false,
    };
  } catch (error) {
    if ((error as { code?: string }).code !== '57014') throw error;
    return {
      rowsRead: Number.POSITIVE_INFINITY,
      pages: Number.POSITIVE_INFINITY,
      rowsFound: 0,
      planningMs: 0,
      executionMs: EXPLAIN_TIMEOUT_MS,
      plan: 'given up',
      isGivenUp: true,
    };
  } finally {
    await client.query('reset statement_timeout');
  }
}

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}

/** Open findings about the completeness of a network (`index_finding`). */
import type { ClientBase } from 'pg';
import { type FindingKind, findingKindOf } from '../../domain/networks/index-findings.ts';

export interface FindingKey {
  readonly kind: FindingKind;
  /** What it is about, such as an address; one finding for each kind and subject. */
  readonly subject: string;
}

export interface IndexFinding extends FindingKey {
  /** For operators: it may name hosts. */
  readonly detail: string;
  /** What the chain family needs to look at it again, as JSON. */
  readonly body?: unknown;
  /** Endpoints from which the blocks were read since, in vain. */
  readonly tried?: readonly string[];
  readonly attempts?: number;
  /** Milliseconds until the blocks are read again. */
  readonly retryInMs?: number;
}

export interface StoredFinding extends IndexFinding {
  readonly tried: readonly string[];
  readonly attempts: number;
  readonly foundAt: Date;
  /** Whether it is time to read the blocks again. */
  readonly isDue: boolean;
}

export async function readFindings(client: ClientBase, network: string): Promise<readonly StoredFinding[]> {
  const { rows } = await client.query(
    `select kind, subject, detail, body, found_at, tried, attempts, coalesce(retry_at <= now(), true) as is_due
     from index_finding where network = $1 order by kind, subject`,
    [network],
  );
  return rows.flatMap((row) => {
    const kind = findingKindOf(row.kind);
    if (!kind) return [];
    const { subject, detail, tried, attempts } = row;
    const body = row.body === null ? undefined : JSON.parse(row.body);
    return [{ kind, subject, detail, body, tried, attempts, foundAt: row.found_at, isDue: row.is_due }];
  });
}

/** A finding that is open already keeps the time when it was found, and what it does not say anew. */
export async function writeFindings(
  client: ClientBase,
  network: string,
  findings: readonly IndexFinding[],
): Promise<void> {
  for (const { kind, subject, detail, body, tried, attempts, retryInMs } of findings) {
    await client.query(
      `insert into index_finding as known (network, kind, subject, detail, body, tried, attempts, retry_at)
       values ($1, $2, $3, $4, $5, coalesce($6, '{}'::text[]), coalesce($7, 0), now() + make_interval(secs => $8))
       on conflict (network, kind, subject) do update set
         detail = excluded.detail, body = coalesce(excluded.body, known.body),
         tried = coalesce($6, known.tried), attempts = coalesce($7, known.attempts),
         retry_at = coalesce(excluded.retry_at, known.retry_at)`,
      [
        network,
        kind,
        subject,
        detail,
        body === undefined ? null : JSON.stringify(body),
        tried ?? null,
        attempts ?? null,
        retryInMs === undefined ? null : retryInMs / 1_000,
      ],
    );
  }
}

export async function removeFindings(
  client: ClientBase,
  network: string,
  findings: readonly FindingKey[],
): Promise<void> {
  for (const { kind, subject } of findings) {
    await client.query('delete from index_finding where network = $1 and kind = $2 and subject = $3', [
      network,
      kind,
      subject,
    ]);
  }
}

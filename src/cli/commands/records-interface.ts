/** What the reading commands (search, show, lanes, audit, export) read, from a store or from a server. */

import type { Diagnosis } from '../../api/execution/execution-schema.ts';
import type { ExportShape } from '../../api/routes/export-route.ts';
import type { LookupMatch } from '../../api/routes/names-schema.ts';
import type { Attempt } from '../../domain/attempts.ts';
import type { RawParameters } from '../../domain/filters/search-parameters.ts';
import type { Message } from '../../domain/message.ts';
import type { Names } from '../../domain/names/message-names.ts';
import type { ExplorerUrls } from '../../domain/networks/block-explorers.ts';
import type { CountedLane, LaneEnds, LanePage, LaneStatistics } from '../../store/query/lanes.ts';

export interface RecordPage {
  /** Full records as JSON. */
  readonly records: readonly string[];
  readonly cursor: string | null;
}

export interface ExportPiece {
  readonly bytes: Uint8Array;
  /** Messages in it; null where that is not known. */
  readonly rows: number | null;
}

export interface AuditMaterial {
  readonly lanes: readonly LaneStatistics[];
  /** What the contracts themselves have counted. */
  readonly counted: readonly CountedLane[];
  /** Sentences about what is known to be missing. */
  readonly losses: readonly string[];
  /** Sentences about what could not be checked. */
  readonly warnings: readonly string[];
}

export interface RecordNames extends Names {
  readonly explorerUrls: (chainSelector: string) => ExplorerUrls | null;
}

export interface Records {
  search(parameters: RawParameters): Promise<RecordPage>;
  /** @param messageId 64 hexadecimal digits */
  findMessage(messageId: string): Promise<string | undefined>;
  /** Records whose message ids begin with these digits; throws where the source cannot be asked for that. */
  findMessagesByPrefix(digits: string, limit: number): Promise<readonly string[]>;
  attempts(message: Message): Promise<readonly Attempt[]>;
  diagnosis(message: Message): Promise<Diagnosis>;
  names(messages: readonly Message[]): Promise<RecordNames>;
  /** What a text means: `GET /v2/lookup`. */
  lookUp(text: string): Promise<readonly LookupMatch[]>;
  lanes(ends: LaneEnds, windowDays: number, namedRanges: number): Promise<LanePage>;
  auditMaterial(ends: LaneEnds, namedRanges: number): Promise<AuditMaterial>;
  export(parameters: RawParameters, shape: ExportShape, signal: AbortSignal): AsyncIterable<ExportPiece>;
}

/** Where the reading commands (search, show, lanes, audit, export) read: the configured store, or a server by its URL. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import { createCallBudget } from '../../api/execution/call-budget.ts';
import { createDiagnoses } from '../../api/execution/diagnoses.ts';
import { diagnosisBody } from '../../api/execution/diagnosis-route.ts';
import { prepareExecution } from '../../api/execution/execution-preparation.ts';
import type { Diagnosis } from '../../api/execution/execution-schema.ts';
import { type ExportShape, exportBatches } from '../../api/routes/export-batches.ts';
import { dayOf, windowStart } from '../../api/routes/lanes-route.ts';
import { lookUp } from '../../api/routes/lookup-route.ts';
import type { LookupMatch } from '../../api/routes/lookup-schema.ts';
import { tokenBody } from '../../api/routes/tokens-route.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { addressBytes } from '../../domain/addresses.ts';
import { type Attempt, attemptsOf } from '../../domain/attempts.ts';
import { ApiError } from '../../domain/errors.ts';
import { parseFilters, parseSearch, type RawParameters } from '../../domain/filters/search-parameters.ts';
import { searchableText } from '../../domain/filters/search-text.ts';
import type { Message } from '../../domain/message.ts';
import { definedLabels } from '../../domain/names/labels.ts';
import {
  createNames,
  type NamedToken,
  type Names,
  tokenAddressesOf,
} from '../../domain/names/message-names.ts';
import { explorerUrlsOf } from '../../domain/networks/block-explorers.ts';
import type { ExplorerUrls } from '../../domain/networks/explorer-links.ts';
import type { LaneEnds, LanePage, LaneStatistics } from '../../store/query/lanes.ts';
import type { Store } from '../../store/store.ts';
import type { CountedLane } from '../../store/write/lane-counters.ts';
import { counted } from '../../text/format.ts';
import { type Config, type ConfigFlags, networkSourcesOf, UsageError } from '../config/config.ts';
import { createDestinations } from '../config/destinations.ts';
import { type CliContext, withStore, withStoreOptions } from '../context.ts';
import { knownLosses, stoppedSources } from '../doctor/source-findings.ts';
import { createRemoteRecords } from './remote-records.ts';

/** A page of a search. */
export interface RecordPage {
  /** Full records as JSON. */
  readonly records: readonly string[];
  readonly cursor: string | null;
}

/** A piece of an export. */
export interface ExportPiece {
  readonly bytes: Buffer;
  /** Messages in it; null where that is not known. */
  readonly rows: number | null;
}

/** What `audit` judges. */
export interface AuditMaterial {
  readonly lanes: readonly LaneStatistics[];
  /** What the contracts themselves have counted. */
  readonly counted: readonly CountedLane[];
  /** Sentences about what is known to be missing. */
  readonly losses: readonly string[];
  /** Sentences about what could not be checked. */
  readonly remarks: readonly string[];
}

export interface RecordNames extends Names {
  readonly explorerUrls: (chainSelector: string) => ExplorerUrls | null;
}

export interface Records {
  /** The page of a search, by the API's parameters. */
  search(parameters: RawParameters): Promise<RecordPage>;
  /** @param messageId 64 hexadecimal digits */
  findMessage(messageId: string): Promise<string | undefined>;
  /** Records whose message ids begin with these digits; throws where the source cannot be asked for that. */
  findMessagesByPrefix(digits: string, limit: number): Promise<readonly string[]>;
  /** The attempts to execute a message. */
  attempts(message: Message): Promise<readonly Attempt[]>;
  /** Whether a manual execution of the message would work now. */
  diagnosis(message: Message): Promise<Diagnosis>;
  /** Tokens, labels and block explorers of these messages. */
  names(messages: readonly Message[]): Promise<RecordNames>;
  /** What a text means: `GET /v2/lookup`. */
  lookUp(text: string): Promise<readonly LookupMatch[]>;
  lanes(ends: LaneEnds, windowDays: number, namedRanges: number): Promise<LanePage>;
  auditMaterial(ends: LaneEnds, namedRanges: number): Promise<AuditMaterial>;
  export(parameters: RawParameters, shape: ExportShape, signal: AbortSignal): AsyncIterable<ExportPiece>;
}

export interface RecordFlags extends ConfigFlags {
  readonly url?: string;
}

export function withRecordOptions(command: Command): Command {
  return withStoreOptions(command).option(
    '--url <url>',
    'read from a Lanescan server instead, such as https://lanescan.example (key: LANESCAN_API_KEY)',
  );
}

/** Opens the records that the flags choose, uses them, and always closes them. */
export async function withRecords<T>(
  flags: RecordFlags,
  config: Config,
  context: CliContext,
  use: (records: Records) => Promise<T>,
): Promise<T> {
  const noteSimulated = () =>
    void context.err.write('The data is SIMULATED: no message exists on a chain.\n');
  if (flags.url !== undefined) {
    if (flags.data !== undefined)
      throw new UsageError('--url and --data exclude each other.', 'Give the one to read from.');
    return use(
      createRemoteRecords({
        url: flags.url,
        apiKey: config.apiKey,
        signal: context.signal,
        onSimulated: noteSimulated,
      }),
    );
  }
  return withStore(withDemo(config, flags, context), context, { connections: 1 }, async (store) => {
    if (store.simulated) noteSimulated();
    return use(storeRecords(store, config, context));
  });
}

/** `lanescan demo` has its own folder. Where it is the only one with a database, it is the one that is meant. */
function withDemo(config: Config, flags: RecordFlags, { err }: CliContext): Config {
  const demo = demoFolder(config, flags);
  if (demo === undefined || hasDatabase(config.dataFolder)) return config;
  err.write(`Reading the demo's database in ${demo}: ${config.dataFolder} has no database.\n`);
  return { ...config, dataFolder: demo };
}

/** The folder of the demo's database, where there is one beside the configured database. */
export function demoFolder(config: Config, { data, url }: RecordFlags): string | undefined {
  if (data !== undefined || url !== undefined || config.databaseUrl !== null) return undefined;
  const demo = `${config.dataFolder}/demo`;
  return hasDatabase(demo) ? demo : undefined;
}

function hasDatabase(dataFolder: string): boolean {
  return existsSync(path.join(dataFolder, 'postgres', 'PG_VERSION'));
}

function storeRecords(store: Store, config: Config, context: CliContext): Records {
  return {
    search: (parameters) => store.search(parseSearch(parameters, store.cursors)),
    findMessage: async (messageId) => (await store.findMessage(messageId))?.record,
    findMessagesByPrefix: (digits, limit) => store.findMessagesByPrefix(digits, limit),
    async attempts(message) {
      const found = await store.messageExecutions(message.messageId.slice(2));
      return attemptsOf(message, found?.facts ?? [], found?.removed);
    },
    async diagnosis({ messageId }) {
      const preparation = await prepareExecution(store, messageId.slice(2));
      const ending = new AbortController();
      const log = { warn: (first: unknown, text = first) => void context.err.write(`${text}\n`) };
      const diagnoses = createDiagnoses({
        // Only then are the keys of the endpoints needed.
        destinations:
          preparation.kind === 'ready'
            ? createDestinations({
                sources: networkSourcesOf(config, context.environment),
                signal: AbortSignal.any([context.signal, ending.signal]),
                notice: () => undefined,
              })
            : undefined,
        budget: createCallBudget({ log }),
        log,
      });
      try {
        return await diagnosisBody(preparation, diagnoses);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        throw new OperatorError(error.message, '`lanescan doctor` tests the endpoints.');
      } finally {
        ending.abort();
      }
    },
    async names(messages) {
      const tokens = await tokensOf(store, messages);
      const labels = definedLabels().map(({ network, ...label }) => ({ ...label, chainSelector: network }));
      // Simulated transactions are on no chain.
      const explorerUrls = store.simulated ? () => null : explorerUrlsOf;
      return { ...createNames(tokens, labels), explorerUrls };
    },
    lookUp: (text) => lookUp(store, searchableText(text)),
    lanes(ends, windowDays, namedRanges) {
      const now = new Date(context.now());
      const limit = Number.MAX_SAFE_INTEGER;
      return store.lanes({ ...ends, now, deliveredSince: windowStart(now, windowDays), namedRanges, limit });
    },
    async auditMaterial(ends, namedRanges) {
      const now = new Date(context.now());
      const limit = Number.MAX_SAFE_INTEGER;
      const { lanes } = await store.lanes({ ...ends, now, deliveredSince: dayOf(now), namedRanges, limit });
      const selectors = [ends.sourceChainSelector, ends.destChainSelector];
      return {
        lanes,
        counted: await store.countedLanes(ends),
        losses: await knownLosses(store, selectors),
        remarks: [
          ...unconfirmedRemarks(await store.countUnconfirmed(ends)),
          ...(await stoppedSources(store, selectors)),
        ],
      };
    },
    async *export(parameters, shape, signal) {
      const { filters } = parseFilters(parameters);
      for await (const { text, rows } of exportBatches(store, filters, shape, signal))
        yield { bytes: Buffer.from(text), rows };
    },
  };
}

/** Tokens in one read. A page has at most a thousand messages, nearly all of the same few tokens. */
async function tokensOf(store: Store, messages: readonly Message[]): Promise<readonly NamedToken[]> {
  const addresses = tokenAddressesOf(messages).flatMap(addressBytes);
  if (addresses.length === 0) return [];
  const { tokens } = await store.tokens({ addresses, limit: MAX_NAMED_TOKENS });
  return tokens.map(tokenBody);
}

const MAX_NAMED_TOKENS = 10_000;

function unconfirmedRemarks(messages: number | null): readonly string[] {
  if (messages === null || messages === 0) return [];
  const are = messages === 1 ? 'is' : 'are';
  return [
    `${counted(messages, 'message')} ${are} known only from an import or a mirror: their source chains, which are indexed ` +
      'here, have not confirmed them so far.',
  ];
}

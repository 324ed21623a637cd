/** The records of a store, for the reading commands. */
import { createCallBudget } from '../../api/execution/call-budget.ts';
import { createDiagnoses } from '../../api/execution/diagnoses.ts';
import { createPreparations } from '../../api/execution/execution-preparation.ts';
import { diagnosisBody } from '../../api/execution/execution-routes.ts';
import { exportBatches } from '../../api/routes/export-route.ts';
import { dayOf, windowStart } from '../../api/routes/lanes-route.ts';
import { lookUp, tokenBody } from '../../api/routes/names-route.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { addressBytes } from '../../domain/addresses.ts';
import { attemptsOf } from '../../domain/attempts.ts';
import { ApiError } from '../../domain/errors.ts';
import { parseFilters, parseSearch } from '../../domain/filters/search-parameters.ts';
import { searchableText } from '../../domain/filters/search-text.ts';
import { definedLabels } from '../../domain/names/labels.ts';
import { createNames, tokenAddressesOf } from '../../domain/names/message-names.ts';
import { explorerUrlsOf } from '../../domain/networks/block-explorers.ts';
import type { Store } from '../../store/store.ts';
import { counted } from '../../text/format.ts';
import type { Config } from '../config/config.ts';
import { createDestinations } from '../config/destinations.ts';
import type { CliContext } from '../context.ts';
import { knownLosses, stoppedSources } from '../doctor/source-findings.ts';
import type { Records } from './records-interface.ts';

export function createStoreRecords(store: Store, config: Config, context: CliContext): Records {
  return {
    search: (parameters) => store.search(parseSearch(parameters, store.cursors)),
    findMessage: async (messageId) => (await store.findMessage(messageId))?.record,
    findMessagesByPrefix: (digits, limit) => store.findMessagesByPrefix(digits, limit),
    async attempts(message) {
      const found = await store.messageExecutions(message.messageId.slice(2));
      return attemptsOf(message, found?.facts ?? [], found?.removed);
    },
    async diagnosis({ messageId }) {
      const preparation = await createPreparations(store).prepare(messageId.slice(2));
      const ending = new AbortController();
      const log = { warn: (first: unknown, text = first) => void context.err.write(`${text}\n`) };
      const diagnoses = createDiagnoses({
        // Only then are the keys of the endpoints needed.
        destinations:
          preparation.kind === 'ready'
            ? createDestinations({
                sources: config.read('networks', context.environment),
                signal: AbortSignal.any([context.signal, ending.signal]),
                writeLog: () => undefined,
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
      const addresses = tokenAddressesOf(messages).flatMap(addressBytes);
      // In one read: a page has at most a thousand messages, nearly all of the same few tokens.
      const { tokens } = await store.tokens({ addresses, limit: MAX_NAMED_TOKENS });
      const labels = definedLabels().map(({ network, ...label }) => ({ ...label, chainSelector: network }));
      // Simulated transactions are on no chain.
      const explorerUrls = store.simulated ? () => null : explorerUrlsOf;
      return { ...createNames(tokens.map(tokenBody), labels), explorerUrls };
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
        warnings: [
          ...unconfirmedWarnings(await store.countUnconfirmed(ends)),
          ...(await stoppedSources(store, selectors)),
        ],
      };
    },
    async *export(parameters, shape, signal) {
      const { filters } = parseFilters(parameters, {});
      for await (const { text, rows } of exportBatches(store, filters, shape, signal))
        yield { bytes: Buffer.from(text), rows };
    },
  };
}

const MAX_NAMED_TOKENS = 10_000;

function unconfirmedWarnings(messages: number | null): readonly string[] {
  if (messages === null || messages === 0) return [];
  const are = messages === 1 ? 'is' : 'are';
  return [
    `${counted(messages, 'message')} ${are} known only from an import or a mirror: their source chains, which are indexed ` +
      'here, have not confirmed them so far.',
  ];
}

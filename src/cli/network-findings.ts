/** What `lanescan doctor` says about the networks to index: every endpoint is tried, all at the same time. */
import { OperatorError } from '../domain/errors.ts';
import type { Examination, Found } from '../ingest/evm/rpc/examination.ts';
import type { NetworkSource } from '../ingest/evm/source.ts';
import { type Config, networkSourcesOf } from './config.ts';
import type { CliContext } from './context.ts';
import type { Finding } from './doctor.ts';
import { counted, howOld, printable } from './terminal-text.ts';
import { lanescanVersion } from './version.ts';

/** Some chains make a block only when there is something to put into it. */
const OLD_HEAD_MS = 15 * 60_000;
/** Below this, history takes more requests than most plans allow. */
const SHORT_RANGE = 100;

/** Says nothing where none are configured. */
export async function* networkFindings(config: Config, context: CliContext): AsyncGenerator<Finding> {
  let sources: readonly NetworkSource[];
  try {
    sources = networkSourcesOf(config, context.environment);
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    yield {
      verdict: 'fault',
      what: `Networks: ${printable(error.message)}`,
      remedy: printable(error.remedy),
    };
    return;
  }
  if (sources.length === 0) return;
  const examinations = sources.map((source) => examine(source, context));
  // One that fails while another is awaited is still heard of in its turn.
  for (const examination of examinations) examination.catch(() => undefined);
  for (const [index, source] of sources.entries()) {
    yield* findingsOf(source, (await examinations[index]) ?? [], context.now());
  }
}

async function examine(source: NetworkSource, { signal, now }: CliContext): Promise<readonly Examination[]> {
  // Here, because the other verbs shall not wait for the library behind it.
  const [{ examineEndpoint }, { endpointNames }] = await Promise.all([
    import('../ingest/evm/rpc/examination.ts'),
    import('../ingest/evm/rpc/chain.ts'),
  ]);
  const names = endpointNames(source.rpc);
  return Promise.all(
    source.rpc.map((url, index) =>
      examineEndpoint(source, {
        url,
        name: names[index] ?? url.host,
        userAgent: `lanescan/${lanescanVersion}`,
        signal,
        now,
        random: Math.random,
      }),
    ),
  );
}

function* findingsOf(
  source: NetworkSource,
  examinations: readonly Examination[],
  now: number,
): Generator<Finding> {
  const { name } = source.network;
  for (const examination of examinations) yield* endpointFindings(source, examination, now);
  const answering = examinations.filter(({ head }) => 'value' in head);
  if (answering.length === 0) {
    yield {
      verdict: 'fault',
      what: `${name}: no endpoint can be used`,
      remedy: 'Check rpc, or add another one.',
    };
    return;
  }
  for (const router of source.routers) yield routerFinding(name, router, answering);
}

function* endpointFindings(source: NetworkSource, examination: Examination, now: number): Generator<Finding> {
  const { head, finalized, batchSize, logRange, logsFrom, stateDepth } = examination;
  const place = `${source.network.name} at ${printable(examination.name)}`;
  if ('problem' in head) {
    const verdict = source.rpc.length > 1 ? 'worry' : 'fault';
    yield { verdict, what: told(place, examination, head.problem), remedy: 'Check its URL and its key.' };
    return;
  }
  const { number, timestamp } = head.value;
  const headAge = now - timestamp * 1000;
  const state = known(stateDepth);
  const capabilities = [
    `head ${number}, ${howOld(headAge)}`,
    shown(finalized, (block) => `final up to ${block.number}`),
    shown(logRange, (blocks) => `logs of ${counted(blocks, 'block')} at once`),
    shown(batchSize, (calls) => (calls === 1 ? 'no batches' : `batches of ${calls}`)),
    shown(logsFrom, (block) => `logs from block ${block} on`),
    state === undefined
      ? ''
      : state >= number
        ? 'state of every block'
        : `state of the newest ${state} blocks or more`,
  ];
  yield { verdict: 'fine', what: `${place}: ${capabilities.filter((text) => text !== '').join(', ')}` };
  if (headAge > OLD_HEAD_MS) {
    yield {
      verdict: 'worry',
      what: `${place}: the newest block is ${howOld(headAge)}`,
      remedy: 'The node may have fallen behind; the indexer prefers others while it has.',
    };
  }
  const remedies: readonly (readonly [Found<unknown> | undefined, Finding['verdict'], string])[] = [
    [finalized, 'fault', 'Set `finality` to a depth in blocks.'],
    [batchSize, 'worry', 'Set `batchSize: 1`.'],
    [logRange, 'fault', 'Use an endpoint that answers eth_getLogs.'],
    [logsFrom, 'worry', 'Use an endpoint with the whole history, or a later `start`.'],
    [examination.routers, 'worry', 'Try again; the indexer asks routers all the time.'],
  ];
  for (const [found, verdict, remedy] of remedies) {
    if (found !== undefined && 'problem' in found)
      yield { verdict, what: told(place, examination, found.problem), remedy };
  }
  const range = known(logRange);
  if (range !== undefined && range < Math.min(SHORT_RANGE, source.maxRange, number + 1)) {
    yield {
      verdict: 'worry',
      what: `${place}: it gives logs of ${counted(range, 'block')} at once, and history is long`,
      remedy: 'Use an endpoint or a plan with a longer range, or a later `start`.',
    };
  }
}

function routerFinding(network: string, router: string, examinations: readonly Examination[]): Finding {
  const answers = examinations.flatMap(({ name, routers }) =>
    (known(routers) ?? []).filter(({ address }) => address === router).map((found) => ({ name, ...found })),
  );
  const what = `${network}: router ${router}`;
  const remedy = 'Check `routers` against the CCIP directory: everything else is believed because of them.';
  const [first] = answers;
  if (first === undefined) return { verdict: 'worry', what: `${what} could not be asked` };
  const other = answers.find(({ type, hasCode }) => type !== first.type || hasCode !== first.hasCode);
  if (other !== undefined) {
    const names = `${printable(first.name)} and ${printable(other.name)}`;
    return { verdict: 'fault', what: `${what}: ${names} disagree about it`, remedy };
  }
  if (!first.hasCode) return { verdict: 'fault', what: `${what}: there is no contract`, remedy };
  const type = printable(first.type ?? 'nothing');
  if (!/^Router \d/.test(type)) return { verdict: 'fault', what: `${what} calls itself ${type}`, remedy };
  return { verdict: 'fine', what: `${what} is ${type}` };
}

/** Problems begin with the name of their endpoint, which stands there already. */
function told(place: string, { name }: Examination, problem: string): string {
  return `${place}: ${printable(problem.startsWith(`${name}: `) ? problem.slice(name.length + 2) : problem)}`;
}

function known<T>(found: Found<T> | undefined): T | undefined {
  return found !== undefined && 'value' in found ? found.value : undefined;
}

function shown<T>(found: Found<T> | undefined, words: (value: T) => string): string {
  const value = known(found);
  return value === undefined ? '' : words(value);
}

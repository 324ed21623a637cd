/** Checks of `lanescan doctor` for the configured networks: every endpoint is tested, all at the same time. */
import type { NetworkReport, NetworkSource, ProbeFinding } from '../../ingest/engine/family.ts';
import { probeNetwork } from '../../ingest/families.ts';
import { howOld, printable } from '../../text/format.ts';
import { type Config, networkSourcesOf } from '../config/config.ts';
import type { CliContext } from '../context.ts';
import { lanescanVersion } from '../version.ts';
import { type Finding, failure, ok, problemFinding, warning } from './finding.ts';

/** Generous, because some chains produce blocks only when there are transactions. */
const OLD_HEAD_MS = 15 * 60_000;

/** No findings where no network is configured. */
export async function* networkFindings(config: Config, context: CliContext): AsyncGenerator<Finding> {
  const { signal, now } = context;
  let sources: readonly NetworkSource[];
  try {
    sources = networkSourcesOf(config, context.environment);
  } catch (error) {
    yield problemFinding('Networks', error);
    return;
  }
  const options = { userAgent: `lanescan/${lanescanVersion}`, signal, now };
  const examinations = sources.map((source) => probeNetwork(source, options));
  // A failure while another network is awaited is reported in its turn.
  for (const examination of examinations) examination.catch(() => undefined);
  for (const [index, { network }] of sources.entries()) {
    const examination = await examinations[index];
    if (examination) yield* findingsOf(network.name, examination, now());
  }
}

function* findingsOf(network: string, { endpoints, routers }: NetworkReport, now: number) {
  for (const { name, head, capabilities, findings } of endpoints) {
    const prefix = `${network} at ${printable(name)}`;
    if (head) {
      const headAge = now - head.timestamp * 1000;
      const parts = [`head ${head.number}, ${howOld(headAge)}`, ...capabilities];
      yield ok(`${prefix}: ${printable(parts.join(', '))}`);
      if (headAge > OLD_HEAD_MS)
        yield warning(
          `${prefix}: the newest block is ${howOld(headAge)}`,
          'The node may have fallen behind; the indexer prefers other endpoints meanwhile.',
        );
    }
    for (const finding of findings) yield asFinding(prefix, finding);
  }
  if (endpoints.every(({ head }) => head === null))
    yield failure(`${network}: no endpoint can be used`, 'Check rpc, or add another one.');
  for (const finding of routers) yield asFinding(network, finding);
}

function asFinding(prefix: string, { severity, text, remedy }: ProbeFinding): Finding {
  return { severity, what: `${prefix}: ${printable(text)}`, ...(remedy !== undefined && { remedy }) };
}

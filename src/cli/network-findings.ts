/** What `lanescan doctor` says about the networks to index: every endpoint is tried, all at the same time. */
import { OperatorError } from '../base/operator-error.ts';
import type { ExaminationFinding, NetworkExamination, NetworkSource } from '../ingest/chain/family.ts';
import { examineNetwork } from '../ingest/families.ts';
import { type Config, networkSourcesOf } from './config.ts';
import type { CliContext } from './context.ts';
import type { Finding } from './doctor.ts';
import { howOld, printable } from './terminal-text.ts';
import { lanescanVersion } from './version.ts';

/** Some chains make a block only when there is something to put into it. */
const OLD_HEAD_MS = 15 * 60_000;

const verdicts: Record<ExaminationFinding['severity'], Finding['verdict']> = {
  ok: 'fine',
  warning: 'worry',
  error: 'fault',
};

/** Says nothing where none are configured. */
export async function* networkFindings(config: Config, context: CliContext): AsyncGenerator<Finding> {
  const { signal, now } = context;
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
  const options = { userAgent: `lanescan/${lanescanVersion}`, signal, now };
  const examinations = sources.map((source) => examineNetwork(source, options));
  // One that fails while another is awaited is reported in its turn.
  for (const examination of examinations) examination.catch(() => undefined);
  for (const [index, { network }] of sources.entries()) {
    const examination = await examinations[index];
    if (examination) yield* findingsOf(network.name, examination, now());
  }
}

function* findingsOf(network: string, { endpoints, routers }: NetworkExamination, now: number) {
  for (const { name, head, capabilities, findings } of endpoints) {
    const place = `${network} at ${printable(name)}`;
    if (head) {
      const headAge = now - head.timestamp * 1000;
      const parts = [`head ${head.number}, ${howOld(headAge)}`, ...capabilities];
      yield { verdict: 'fine', what: `${place}: ${printable(parts.join(', '))}` } as const;
      if (headAge > OLD_HEAD_MS) {
        yield {
          verdict: 'worry',
          what: `${place}: the newest block is ${howOld(headAge)}`,
          remedy: 'The node may have fallen behind; the indexer prefers others while it has.',
        } as const;
      }
    }
    for (const finding of findings) yield asFinding(place, finding);
  }
  if (endpoints.every(({ head }) => head === null)) {
    yield {
      verdict: 'fault',
      what: `${network}: no endpoint can be used`,
      remedy: 'Check rpc, or add another one.',
    } as const;
  }
  for (const finding of routers) yield asFinding(network, finding);
}

function asFinding(place: string, { severity, text, remedy }: ExaminationFinding): Finding {
  return {
    verdict: verdicts[severity],
    what: `${place}: ${printable(text)}`,
    ...(remedy !== undefined && { remedy }),
  };
}

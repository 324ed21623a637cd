/** What `lanescan doctor` reports of an EVM network: every endpoint is probed, all at the same time. */
import { counted } from '../../../text/format.ts';
import type { EndpointReport, NetworkReport, ProbeFinding, ProbeOptions } from '../../engine/family.ts';
import { endpointNames } from '../../engine/json-rpc/endpoint-pool.ts';
import { type EndpointProbe, type Found, MAX_ADDRESSES, probeEndpoint } from '../rpc/endpoint-probe.ts';
import type { EvmSource } from '../settings.ts';
import { watchedTopics } from './abi.ts';

/** Below this, history takes more requests than most plans allow. */
const SHORT_RANGE = 100;

export async function probeNetwork(source: EvmSource, options: ProbeOptions): Promise<NetworkReport> {
  const names = endpointNames(source.rpc);
  const probes = await Promise.all(
    source.rpc.map((url, index) => probeEndpoint(source, url, names[index] ?? url.host, options)),
  );
  const answering = probes.filter(({ head }) => 'value' in head);
  return {
    endpoints: probes.map((probe) => endpointProbe(source, probe)),
    routers: answering.length === 0 ? [] : source.routers.map((router) => routerFinding(router, answering)),
  };
}

function endpointProbe(source: EvmSource, probe: EndpointProbe): EndpointReport {
  const { name, head, finalized, batchSize, filterSize, logRangeOfAll, logRange, logsFrom, stateDepth } =
    probe;
  const textOf = (problem: string) =>
    // Problems begin with the name of their endpoint, which the reader has already.
    problem.startsWith(`${name}: `) ? problem.slice(name.length + 2) : problem;
  if ('problem' in head) {
    const severity = source.rpc.length > 1 ? 'warning' : 'error';
    const finding = { severity, text: textOf(head.problem), remedy: 'Check its URL and its key.' } as const;
    return { name, head: null, capabilities: [], findings: [finding] };
  }
  const { number } = head.value;
  const state = known(stateDepth);
  const capabilities = [
    described(finalized, (block) => `final up to ${block.number}`),
    described(logRange, (blocks) => `logs of ${counted(blocks, 'block')} at once`),
    described(logRangeOfAll, (blocks) =>
      blocks === null
        ? 'only by address'
        : blocks === known(logRange)
          ? ''
          : `of ${counted(blocks, 'block')} without an address`,
    ),
    described(filterSize, ({ topics, addresses }) =>
      [
        ...(topics < watchedTopics.length ? [counted(topics, 'topic')] : []),
        ...(addresses < MAX_ADDRESSES ? [counted(addresses, 'address', 'addresses')] : []),
      ]
        .map((text) => `${text} in one filter`)
        .join(', '),
    ),
    described(batchSize, (calls) => (calls === 1 ? 'no batches' : `batches of ${calls}`)),
    described(probe.hasReceipts, (offers) => (offers ? '' : 'no receipts')),
    described(logsFrom, (block) => `logs from block ${block} on`),
    state === undefined
      ? ''
      : state >= number
        ? 'state of every block'
        : `state of the newest ${state} blocks or more`,
  ].filter((text) => text !== '');

  const remedies: readonly (readonly [Found<unknown> | undefined, 'warning' | 'error', string])[] = [
    [finalized, 'error', 'Set `finality` to a depth in blocks.'],
    [batchSize, 'warning', 'Set `batchSize: 1`.'],
    [
      filterSize !== undefined && 'problem' in filterSize ? filterSize : logRange,
      'error',
      'Use an endpoint that answers eth_getLogs.',
    ],
    [logsFrom, 'warning', 'Use an endpoint with the whole history, or a later `start`.'],
    [probe.routers, 'warning', 'Try again; the indexer asks routers all the time.'],
  ];
  const findings: ProbeFinding[] = remedies.flatMap(([found, severity, remedy]) =>
    found !== undefined && 'problem' in found ? [{ severity, text: textOf(found.problem), remedy }] : [],
  );
  if (known(logRangeOfAll) === null) {
    findings.push({
      severity: 'warning',
      text: 'it gives logs only of addresses that are named: new blocks take a query for each new contract',
      remedy: 'It works. An endpoint without this limit finds new ramps with fewer queries.',
    });
  }
  const range = known(logRange);
  if (range !== undefined && range < Math.min(SHORT_RANGE, source.maxRange, number + 1)) {
    findings.push({
      severity: 'warning',
      text: `it gives logs of ${counted(range, 'block')} at once, and history is long`,
      remedy: 'Use an endpoint or a plan with a longer range, or a later `start`.',
    });
  }
  return { name, head: head.value, capabilities, findings };
}

function routerFinding(router: string, probes: readonly EndpointProbe[]): ProbeFinding {
  const answers = probes.flatMap(({ name, routers }) =>
    (known(routers) ?? []).filter(({ address }) => address === router).map((found) => ({ name, ...found })),
  );
  const subject = `router ${router}`;
  const remedy = 'Check `routers` against the CCIP directory: everything else is trusted because of them.';
  const [first] = answers;
  if (first === undefined) return { severity: 'warning', text: `${subject} could not be asked` };
  const other = answers.find(({ type, hasCode }) => type !== first.type || hasCode !== first.hasCode);
  if (other !== undefined) {
    const text = `${subject}: ${first.name} and ${other.name} disagree about it`;
    return { severity: 'error', text, remedy };
  }
  if (!first.hasCode) return { severity: 'error', text: `${subject}: there is no contract`, remedy };
  const type = first.type ?? 'nothing';
  if (!/^Router \d/.test(type)) return { severity: 'error', text: `${subject} calls itself ${type}`, remedy };
  return { severity: 'ok', text: `${subject} is ${type}` };
}

function known<T>(found: Found<T> | undefined): T | undefined {
  return found !== undefined && 'value' in found ? found.value : undefined;
}

function described<T>(found: Found<T> | undefined, words: (value: T) => string): string {
  const value = known(found);
  return value === undefined ? '' : words(value);
}

/** What `lanescan doctor` reports of the endpoints of a network. All are probed at the same time. */
import type { EndpointReport, NetworkSource, ProbeFinding, ProbeOptions } from './family.ts';
import { NodeError, RangeTooLargeError } from './faults.ts';
import { AnswerTooHeavyError, createEndpoint, type Endpoint, usualTiming } from './json-rpc/endpoint.ts';
import { endpointNames, type PooledNodeOptions } from './json-rpc/endpoint-pool.ts';
import type { ClassifyRpcError } from './json-rpc/rpc-error.ts';

/** Short: a dead endpoint must not hold up the others. */
const timing = { ...usualTiming, answerMs: 5_000, bodyMs: 10_000, maxWaitMs: 3_000, firstPauseMs: 500 };

/** The endpoint that is probed, and how its answers are reported. */
export interface Probed<Node, Head> {
  readonly endpoint: Endpoint;
  readonly node: Node;
  readonly newest: Head;
  readonly report: (severity: 'warning' | 'error', text: string, remedy: string) => void;
  /**
   * Undefined where the endpoint fails, which is reported where a remedy is given. Undefined also once the endpoint has left
   * us waiting: each further question would wait as long.
   */
  readonly ask: <T>(
    question: () => Promise<T>,
    severity?: 'warning' | 'error',
    remedy?: string,
  ) => Promise<T | undefined>;
}

/**
 * @param remedy for an endpoint that does not answer, or that serves another network
 * @param probe asks an endpoint that has answered; `found` is what it says of the configured routers
 */
export async function probeEndpoints<Node, Head, Found>(
  source: NetworkSource,
  { userAgent, signal, now }: ProbeOptions,
  classifyRpcError: ClassifyRpcError,
  createNode: (endpoint: Endpoint, options: PooledNodeOptions) => Node & { checkIn(): Promise<Head> },
  remedy: string,
  probe: (
    probed: Probed<Node, Head>,
  ) => Promise<Pick<EndpointReport, 'head' | 'capabilities'> & { readonly found: Found }>,
): Promise<readonly { readonly report: EndpointReport; readonly found: Found | undefined }[]> {
  const { rpc, requestsPerSecond, batchSize } = source;
  const names = endpointNames(rpc);
  const common = { requestsPerSecond, batchSize, userAgent, signal, now, random: Math.random, timing };
  const ignored = () => undefined;
  return Promise.all(
    rpc.map(async (url, index) => {
      const name = names[index] ?? url.host;
      const endpoint = createEndpoint({ ...common, url, name, classifyRpcError });
      const node = createNode(endpoint, { now, onHead: ignored, writeLog: ignored });
      const findings: ProbeFinding[] = [];
      let isSilent = false;
      const report: Probed<Node, Head>['report'] = (severity, problem, remedy) => {
        // Problems begin with the name of their endpoint, which the reader has already.
        const text = problem.startsWith(`${name}: `) ? problem.slice(name.length + 2) : problem;
        findings.push({ severity, text, remedy });
      };
      const ask: Probed<Node, Head>['ask'] = async (question, severity, remedy) => {
        if (isSilent) return undefined;
        try {
          return await question();
        } catch (error) {
          if (!(error instanceof NodeError || error instanceof RangeTooLargeError)) throw error;
          isSilent = error instanceof AnswerTooHeavyError;
          if (severity !== undefined && remedy !== undefined) report(severity, error.message, remedy);
          return undefined;
        }
      };
      const newest = await ask(() => node.checkIn(), rpc.length > 1 ? 'warning' : 'error', remedy);
      if (newest === undefined)
        return { report: { name, head: null, capabilities: [], findings }, found: undefined };
      const { head, capabilities, found } = await probe({ endpoint, node, newest, report, ask });
      const said = capabilities.filter((text) => text !== '');
      return { report: { name, head, capabilities: said, findings }, found };
    }),
  );
}

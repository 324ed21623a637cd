/** The HTTP server, put together from its parts. */
import type { Socket } from 'node:net';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { Store } from '../../store/store.ts';
import { createCallBudget } from '../execution/call-budget.ts';
import { createDiagnoses, type Destinations } from '../execution/diagnoses.ts';
import { createPreparations } from '../execution/execution-preparation.ts';
import { createChangeFeed } from '../live/change-feed.ts';
import { createLive, type LiveLimits } from '../live/live.ts';
import { createMetrics } from '../metrics/metrics.ts';
import { builtExplorer, createExplorer } from '../routes/explorer-route.ts';
import { createFailureReports } from '../routes/failure-report.ts';
import { createRoutes } from '../routes/routes.ts';
import { createAdmission } from './admission.ts';
import { type BackpressureLimits, createBackpressure } from './backpressure.ts';
import { socketAddress, type TrustProxy } from './client-address.ts';
import { type ConnectionLimits, createConnections, registerGracefulShutdown } from './connections.ts';
import { crossOriginHeaders, securityHeaders } from './header-fields.ts';
import { createHttpApp, registerBasePathRedirect } from './http-app.ts';
import { costlyAllowance, defaultRateLimit, groupOfClient, type RateLimitOptions } from './rate-limit.ts';
import { createRequestTracker } from './request-tracker.ts';
import { createResponseCache } from './response-cache.ts';
import { sendError } from './responses.ts';
import type { RouteContext, ServedPath } from './route.ts';
import { registerRoutes } from './route-registration.ts';
import { createRequestSignals } from './route-request.ts';
import { createSharedRateLimiter, type WorkerPeers } from './worker-peers.ts';

export interface ServerOptions extends Partial<RateLimitOptions> {
  readonly store: Store;
  readonly version: string;
  readonly log: FastifyBaseLogger;
  /** Whether each request is logged; warnings and errors are logged in any case. */
  readonly accessLog?: boolean;
  readonly trustProxy?: TrustProxy;
  /** The prefix of all URLs, such as `/lanescan`; empty by default. */
  readonly basePath?: string;
  /** Limits that differ from the defaults: of streams and waiting requests, of connections, of unread response bytes. */
  readonly live?: Partial<LiveLimits>;
  readonly connections?: Partial<ConnectionLimits>;
  readonly backpressure?: Partial<BackpressureLimits>;
  /** A client that takes longer to send a request is disconnected. */
  readonly requestTimeoutMs?: number;
  /** The other worker processes on the same port. */
  readonly peers?: WorkerPeers | undefined;
  /** Where executions can be simulated; nowhere by default. */
  readonly destinations?: Destinations | undefined;
  /** Calls to the endpoints of each network for simulations, of all worker processes together. */
  readonly diagnosisCallsPerDay?: number | undefined;
  /** How old the reasons of failed messages may be while messages change. */
  readonly failureReportMaxAgeMs?: number;
  /** Folder of the built explorer; default: that of this package. */
  readonly explorerFolder?: string;
}

const DEFAULT_REQUEST_TIMEOUT_MS = 30_000;

/**
 * Creates a server that is ready to listen.
 *
 * @example const app = createServer({ store, version, log }); await app.listen({ port: 8080 });
 */
export function createServer(options: ServerOptions): FastifyInstance {
  const { store, version, log, peers, apiKeys = [], basePath = '' } = options;
  const { rateLimit = defaultRateLimit, trustProxy = false } = options;
  const headers = {
    ...securityHeaders,
    ...crossOriginHeaders,
    ...(store.simulated && { 'x-lanescan-simulated': 'true' }),
  };
  const { paths, notFoundPage } = createExplorer(options.explorerFolder ?? builtExplorer, basePath);
  const routes: readonly ServedPath[] = [...createRoutes(version, basePath), ...paths];
  const app = createHttpApp({
    log,
    headers,
    trustProxy,
    basePath,
    requestTimeoutMs: options.requestTimeoutMs ?? DEFAULT_REQUEST_TIMEOUT_MS,
    // The router fails before any hook runs; the request is counted, limited and logged all the same.
    onUnreadableUrl(error, request, reply) {
      tracker.begin(request, reply);
      sendError(admission.rejectionOf(request, reply) ?? error, request, reply);
    },
  });

  // The connections of a proxy belong to many clients.
  const clientOf = (socket: Socket) =>
    trustProxy === false ? groupOfClient(socketAddress(socket), rateLimit) : undefined;
  const onRejected = () => metrics.observeRejection('connections');
  const connections = createConnections(app.server, options.connections, clientOf, onRejected);
  const backpressure = createBackpressure(connections, options.backpressure);
  const rateLimiter = createSharedRateLimiter('general', { rateLimit, apiKeys }, peers);
  const feed = createChangeFeed(store);
  const metrics = createMetrics({
    store,
    feed,
    version,
    inFlight: () => tracker.inFlight,
    rateLimitedClients: () => rateLimiter.clients,
    connections: () => connections.open.size,
    waitingBytes: () => backpressure.bytes,
    peers,
  });
  const budget = createCallBudget({
    log,
    perDay: options.diagnosisCallsPerDay,
    peers,
    onCalls: metrics.observeDiagnosisCalls,
  });
  const context: RouteContext = {
    store,
    feed,
    live: createLive(store, options.live),
    metrics,
    responseCache: createResponseCache(() => store.version()),
    preparations: createPreparations(store),
    diagnoses: createDiagnoses({
      destinations: options.destinations,
      budget,
      log,
      onOutcome: metrics.observeDiagnosis,
    }),
    failures: createFailureReports(store, options.failureReportMaxAgeMs),
  };
  const costlyLimit = { ...costlyAllowance, loopback: rateLimit !== false && rateLimit.loopback };
  const costlyRateLimiter = createSharedRateLimiter('costly', { rateLimit: costlyLimit, apiKeys: [] }, peers);

  const signals = createRequestSignals();
  const tracker = createRequestTracker({
    connections,
    backpressure,
    metrics,
    log,
    accessLog: options.accessLog ?? true,
    groupOf: (address) => groupOfClient(address, rateLimit),
  });
  const admission = createAdmission({
    routes,
    headers,
    rateLimiter,
    costlyRateLimiter,
    metrics,
    log,
    maxPipelined: connections.limits.pipelined,
    basePath,
    isProxyTrusted: trustProxy !== false,
  });

  tracker.register(app);
  admission.register(app);
  if (basePath !== '') registerBasePathRedirect(app, basePath);
  registerRoutes(app, { routes, notFoundPage, basePath, context, signals, reserveBody: tracker.reserveBody });
  registerGracefulShutdown(app, {
    connections,
    log,
    stop() {
      signals.stop();
      return feed.close();
    },
    close() {
      for (const part of [backpressure, metrics, rateLimiter, costlyRateLimiter]) part.close();
    },
  });
  return app;
}

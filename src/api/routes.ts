/** The list of all routes of the API. */
import { attemptRoutes } from './attempts.ts';
import { diagnosisRoutes } from './diagnosis.ts';
import { documentationRoutes } from './documentation.ts';
import { executionInputRoutes } from './execution-inputs.ts';
import { exportRoutes } from './export.ts';
import { failureRoutes } from './failures.ts';
import { historyRoutes } from './history.ts';
import { laneRoutes } from './lanes.ts';
import { lookupRoutes } from './lookup.ts';
import { manualExecutionRoutes } from './manual-execution.ts';
import { messageRoutes } from './messages.ts';
import { metricsRoutes } from './metrics.ts';
import { networkRoutes } from './networks.ts';
import { type OpenApiDocument, openApiDocument } from './openapi.ts';
import { operationRoutes } from './operations.ts';
import type { Route } from './route.ts';
import { statsRoutes } from './stats.ts';
import { streamRoutes } from './stream.ts';
import { tokenRoutes } from './tokens.ts';
import { verifierResultRoutes } from './verifier-results.ts';

/** Every route, including those that document the others. */
export function createRoutes(version: string, basePath = ''): readonly Route[] {
  let document: OpenApiDocument | undefined;
  const routes: Route[] = [
    ...messageRoutes,
    ...historyRoutes,
    ...attemptRoutes,
    ...executionInputRoutes,
    ...manualExecutionRoutes,
    ...diagnosisRoutes,
    ...verifierResultRoutes,
    ...streamRoutes,
    ...exportRoutes,
    ...laneRoutes,
    ...networkRoutes,
    ...tokenRoutes,
    ...lookupRoutes,
    ...statsRoutes,
    ...failureRoutes,
    ...operationRoutes,
    ...metricsRoutes,
  ];
  routes.push(
    ...documentationRoutes(() => {
      document ??= openApiDocument(routes, version, basePath);
      return document;
    }, basePath),
  );
  return routes;
}

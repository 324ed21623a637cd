/** The list of all routes of the API. */

import { rejectParameters } from '../../domain/filters/search-parameters.ts';
import { documentationRoutes } from '../documentation/documentation.ts';
import { type OpenApiDocument, openApiDocument } from '../documentation/openapi.ts';
import { executionRoutes } from '../execution/execution-routes.ts';
import { streamRoutes } from '../live/stream-route.ts';
import type { Route } from '../server/route.ts';
import { exportRoutes } from './export-route.ts';
import { failureRoutes } from './failures-route.ts';
import { historyRoutes } from './history-route.ts';
import { laneRoutes, statsRoutes } from './lanes-route.ts';
import { lookupRoutes } from './lookup-route.ts';
import { messageRoutes } from './messages-route.ts';
import { networkRoutes } from './networks-route.ts';
import { operationRoutes } from './operations-route.ts';
import { tokenRoutes } from './tokens-route.ts';
import { verifierResultRoutes } from './verifier-results-route.ts';

/** Every route, including those that document the others. */
export function createRoutes(version: string, basePath = ''): readonly Route[] {
  let document: OpenApiDocument | undefined;
  const routes: Route[] = [
    ...messageRoutes,
    ...historyRoutes,
    ...executionRoutes,
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
  ];
  routes.push(
    ...documentationRoutes(() => {
      document ??= openApiDocument(routes, version, basePath);
      return document;
    }, basePath),
  );
  return routes.map(rejectingUnknownParameters);
}

/** Routes with parameters check them while parsing. */
function rejectingUnknownParameters(route: Route): Route {
  if (route.queryParameters) return route;
  return {
    ...route,
    handle(request, context) {
      rejectParameters(request.query);
      return route.handle(request, context);
    },
  };
}

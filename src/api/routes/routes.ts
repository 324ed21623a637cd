/** The list of all routes of the API, and its documentation: /openapi.json for programs, /docs for people. */
import { rejectParameters } from '../../domain/filters/search-parameters.ts';
import { docsPage } from '../documentation/docs-page.ts';
import { docsPageScriptHash } from '../documentation/docs-page-assets.ts';
import { type OpenApiDocument, openApiDocument } from '../documentation/openapi.ts';
import { executionRoutes } from '../execution/execution-routes.ts';
import { streamRoutes } from '../live/stream-route.ts';
import type { Route } from '../server/route.ts';
import { exportRoutes } from './export-route.ts';
import { failureRoutes } from './failures-route.ts';
import { historyRoutes } from './history-route.ts';
import { laneRoutes, statsRoutes } from './lanes-route.ts';
import { messageRoutes } from './messages-route.ts';
import { lookupRoutes, tokenRoutes } from './names-route.ts';
import { networkRoutes } from './networks-route.ts';
import { operationRoutes } from './operations-route.ts';

/** Every route, including those that document the others. */
export function createRoutes(version: string, basePath = ''): readonly Route[] {
  let document: OpenApiDocument | undefined;
  const routes: readonly Route[] = [
    ...messageRoutes,
    ...historyRoutes,
    ...executionRoutes,
    ...streamRoutes,
    ...exportRoutes,
    ...laneRoutes,
    ...networkRoutes,
    ...tokenRoutes,
    ...lookupRoutes,
    ...statsRoutes,
    ...failureRoutes,
    ...operationRoutes,
    ...documentationRoutes(() => {
      document ??= openApiDocument(routes, version, basePath);
      return document;
    }, basePath),
  ];
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

/** @param document a function, because the document describes these routes too */
function documentationRoutes(document: () => OpenApiDocument, basePath: string): readonly Route[] {
  return [
    {
      path: '/openapi.json',
      operationId: 'getOpenApi',
      tag: 'Documentation',
      summary: 'This document',
      description: 'The OpenAPI 3.1 description of the service.',
      success: { description: 'The document.', schema: { type: 'object' } },
      handle: () => ({ body: JSON.stringify(document()), freshness: 'document' }),
    },
    {
      path: '/docs',
      mediaTypes: ['text/html'],
      operationId: 'getDocs',
      tag: 'Documentation',
      summary: 'This document, to read',
      description: 'The same description as a page for people.',
      success: { description: 'The page.' },
      handle: (_request, { store }) => ({
        body: docsPage(document(), store.simulated, basePath),
        freshness: 'document',
        headers: {
          'Cross-Origin-Opener-Policy': 'same-origin',
          'Content-Security-Policy':
            `default-src 'none'; style-src 'unsafe-inline'; script-src '${docsPageScriptHash}'; connect-src 'self'; ` +
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        },
      }),
    },
  ];
}

/** The API's description of itself: for programs at /openapi.json, for people at /docs. */
import { refuseParameters } from '../domain/search-parameters.ts';
import { docsPage } from './docs-page.ts';
import type { OpenApiDocument } from './openapi.ts';
import type { Route } from './route.ts';

/** The document describes these routes too, hence the late look at it. */
export function documentationRoutes(document: () => OpenApiDocument): readonly Route[] {
  return [
    {
      path: '/openapi.json',
      mediaType: 'application/json',
      operationId: 'getOpenApi',
      tag: 'Documentation',
      summary: 'This document',
      description: 'The OpenAPI 3.1 description of the service.',
      success: { description: 'The document.', schema: { type: 'object' } },
      errors: [],
      handle({ query }) {
        refuseParameters(query);
        return { body: JSON.stringify(document()), freshness: 'document' };
      },
    },
    {
      path: '/docs',
      mediaType: 'text/html',
      operationId: 'getDocs',
      tag: 'Documentation',
      summary: 'This document, to read',
      description: 'The same description as a page for people.',
      success: { description: 'The page.' },
      errors: [],
      handle({ query }, { store }) {
        refuseParameters(query);
        return {
          body: docsPage(document(), { simulated: store.simulated }),
          freshness: 'document',
          headers: {
            'Cross-Origin-Opener-Policy': 'same-origin',
            'Content-Security-Policy':
              "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
          },
        };
      },
    },
  ];
}

/** The documentation of the API: /openapi.json for programs, /docs for people. */
import type { Route } from '../server/route.ts';
import { docsPage } from './docs-page.ts';
import { docsPageScriptHash } from './docs-page-script.ts';
import type { OpenApiDocument } from './openapi.ts';

/** @param document a function, because the document describes these routes too */
export function documentationRoutes(document: () => OpenApiDocument, basePath: string): readonly Route[] {
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
        body: docsPage(document(), { isSimulated: store.simulated, basePath }),
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

/** The OpenAPI 3.1 document, generated from the routes. */
import { errorCatalogue } from '../../domain/errors.ts';
import { namedSchemas } from '../routes/response-schema.ts';
import { type HeaderName, headerFields } from '../server/header-fields.ts';
import { mediaTypesOf, pathsOf, type Route, type RouteParameter } from '../server/route.ts';
import { exampleMessage } from './example-message.ts';

const statusesOfEveryRoute = [400, 405, 406, 414, 429, 500, 503];

const commonHeaderNames: readonly HeaderName[] = [
  'X-Request-ID',
  'X-Lanescan-Simulated',
  'Cache-Control',
  'RateLimit-Policy',
  'RateLimit',
];
const headersOfStatus: Readonly<Record<number, readonly HeaderName[]>> = {
  304: ['ETag'],
  405: ['Allow'],
  429: ['Retry-After'],
  503: ['Retry-After'],
};

/** The only parameter that paths have. */
const messageIdParameter: RouteParameter = {
  name: 'messageId',
  description: 'Identifier of the message: 0x and 64 hexadecimal digits.',
  schema: { type: 'string', pattern: '^0x[a-fA-F0-9]{64}$' },
};

export type OpenApiDocument = ReturnType<typeof openApiDocument>;

export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string;
  readonly description?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly JsonSchema[];
  readonly examples?: readonly unknown[];
}

export interface Response {
  readonly description: string;
  readonly headers: Readonly<Record<string, Reference>>;
  readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>>;
}

export interface Reference {
  readonly $ref: string;
}

export type Operation = ReturnType<typeof operationOf>;

export function openApiDocument(routes: readonly Route[], version: string, basePath = '') {
  const paths: Readonly<Record<string, { readonly get: Operation }>> = Object.fromEntries(
    routes.map((route) => [route.path, { get: operationOf(route) }]),
  );
  const { Message, ...others } = plainSchemas();
  const schemas: Readonly<Record<string, JsonSchema>> = {
    Message: { ...Message, examples: [exampleMessage] },
    ...others,
  };
  return {
    openapi: '3.1.0',
    info: {
      title: 'Lanescan',
      version,
      description:
        'Read access to records of cross-chain messages (Chainlink CCIP). Everything is GET; nothing here writes.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    // Relative to where this document is served.
    servers: [{ url: basePath === '' ? '/' : basePath, description: 'The server of this document' }],
    // No key is needed; one raises the rate limit.
    security: [{}, { apiKey: [] }, { bearer: [] }],
    tags: [
      { name: 'Messages', description: 'Search messages and read their records.' },
      { name: 'Lanes', description: 'Volume and delivery times of lanes, missing sequence numbers.' },
      { name: 'Networks', description: 'Networks, how far each is indexed, and totals.' },
      { name: 'Operations', description: 'For operators of the service.' },
      { name: 'Documentation', description: 'This document, for programs and for people.' },
    ],
    paths,
    components: {
      schemas,
      responses: errorResponses(),
      headers: headerFields,
      securitySchemes: {
        apiKey: {
          type: 'apiKey',
          in: 'header',
          name: 'X-API-Key',
          description: 'A key from the operator of the server, for a higher rate limit.',
        },
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'The same key in the `Authorization` header.',
        },
      },
    },
  };
}

function operationOf(route: Route) {
  const headersOf = (status: number, own: readonly HeaderName[] = []) => {
    const names = [...commonHeaderNames, ...(headersOfStatus[status] ?? []), ...own];
    return references(route.isUnlimited ? names.filter((name) => !name.startsWith('RateLimit')) : names);
  };
  const responses: Record<string, Response | Reference> = {
    200: {
      description: route.success.description,
      headers: headersOf(200, [
        ...(route.isStreamed ? [] : ['ETag' as const]),
        ...(route.success.headers ?? []),
      ]),
      content: Object.fromEntries(
        mediaTypesOf(route).map((mediaType) => [
          mediaType,
          { schema: (route.success.schema as JsonSchema) ?? { type: 'string' } },
        ]),
      ),
    },
  };
  if (!route.isStreamed) {
    responses[304] = {
      description: 'The version that the client has (`If-None-Match`) is current.',
      headers: headersOf(304, route.success.headers),
      content: {},
    };
  }
  for (const status of [...new Set([...(route.errors ?? []), ...statusesOfEveryRoute])].sort()) {
    responses[status] = { $ref: `#/components/responses/${errorName(status)}` };
  }
  const [, ...aliases] = pathsOf(route);
  return {
    operationId: route.operationId,
    // Not listed as operations, which would double every generated client.
    ...(aliases.length > 0 && { 'x-aliases': aliases }),
    tags: [route.tag as string],
    summary: route.summary,
    description: route.description,
    parameters: [
      ...(route.path.includes('{messageId}') ? [{ ...messageIdParameter, in: 'path', required: true }] : []),
      ...(route.queryParameters ?? []).map(({ isRequired = false, ...parameter }) => ({
        ...parameter,
        in: 'query',
        required: isRequired,
      })),
    ],
    responses,
  };
}

const errorName = (status: number) => `Error${status}`;

/** One response for each error status, shared by all paths. */
function errorResponses(): Record<string, Response> {
  const errors = Object.entries(errorCatalogue);
  const statuses = [...new Set(errors.map(([, { status }]) => status))].sort();
  return Object.fromEntries(
    statuses.map((status) => [
      errorName(status),
      {
        description: errors
          .filter(([, error]) => error.status === status)
          .map(([code, { meaning }]) => `\`${code}\`: ${meaning}`)
          .join('\n\n'),
        headers: references([...commonHeaderNames, ...(headersOfStatus[status] ?? [])]),
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    ]),
  );
}

function references(names: readonly HeaderName[]): Record<string, Reference> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** The named schemas, with references to each other instead of copies. */
function plainSchemas(): Record<string, JsonSchema> {
  const names = new Map<string, string>();
  for (const [name, [schema]] of Object.entries(namedSchemas)) names.set(JSON.stringify(schema), name);
  const plain = (value: unknown, isRoot: boolean): unknown => {
    if (Array.isArray(value)) return value.map((element) => plain(element, false));
    if (typeof value !== 'object' || value === null) return value;
    const name = isRoot ? undefined : names.get(JSON.stringify(value));
    if (name) return { $ref: `#/components/schemas/${name}` };
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, plain(member, false)]));
  };
  return Object.fromEntries(
    Object.entries(namedSchemas).map(([name, [schema, description]]) => [
      name,
      { description, ...(plain(schema, true) as JsonSchema) },
    ]),
  );
}

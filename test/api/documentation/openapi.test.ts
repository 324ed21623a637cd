/** openapi.json: what the routes say, what is served, and well-formed. */
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { exampleMessage } from '../../../src/api/documentation/example-message.ts';
import { openApiDocument } from '../../../src/api/documentation/openapi.ts';
import { createRoutes } from '../../../src/api/routes/routes.ts';
import { pathsOf } from '../../../src/api/server/route.ts';
import { errorCatalogue } from '../../../src/domain/errors.ts';
import { searchParameterNames } from '../../../src/domain/filters/search-parameters.ts';
import { parseMessage } from '../../../src/domain/records/message-parser.ts';
import { sampleMessages, tokenToEvm } from '../../fixtures/sample-messages.ts';
import { fuji, sepolia } from '../../fixtures.ts';
import { serverForAll, startSimulatedServer, TEST_VERSION } from '../running-server.ts';

const readRoot = (name: string) => readFileSync(new URL(`../../../${name}`, import.meta.url), 'utf8');
const text = readRoot('openapi.json');
const document = JSON.parse(text);
const { version } = JSON.parse(readRoot('package.json'));

type Visit = (value: unknown, path: readonly string[]) => void;

function walk(value: unknown, visit: Visit, path: readonly string[] = []): void {
  visit(value, path);
  if (typeof value !== 'object' || value === null) return;
  for (const [key, member] of Object.entries(value)) walk(member, visit, [...path, key]);
}

function resolve(reference: string): unknown {
  return reference
    .slice(2)
    .split('/')
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document);
}

// biome-ignore lint/suspicious/noExplicitAny: the document is taken as the JSON it is.
const operations: [path: string, operation: any][] = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.values(item as object).map((operation): [string, unknown] => [path, operation]),
);
/** The same with every alias as a path of its own. */
const servedOperations = operations.flatMap(([path, operation]): typeof operations =>
  [path, ...(operation['x-aliases'] ?? [])].map((served) => [served, { ...operation, canonicalPath: path }]),
);

const server = serverForAll(sampleMessages);

describe('openapi.json', () => {
  test('is exactly what the routes generate (otherwise: npm run openapi)', () => {
    expect(text).toBe(`${JSON.stringify(openApiDocument(createRoutes(version), version), null, 2)}\n`);
  });

  test('is what the service serves, but for the version', async () => {
    const answer = await server.ask('/openapi.json');
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(answer.json<unknown>()).toEqual({
      ...document,
      info: { ...document.info, version: TEST_VERSION },
    });
  });

  test('has the outline of OpenAPI 3.1', () => {
    expect(document.openapi).toMatch(/^3\.1\.\d$/);
    expect(document.info).toMatchObject({ title: expect.any(String), version });
    const tags = document.tags.map(({ name }: { name: string }) => name);
    for (const [path, operation] of operations) {
      expect(path).toMatch(/^\//);
      expect(tags).toEqual(expect.arrayContaining(operation.tags));
      expect(operation.summary).toMatch(/\w/);
      expect(operation.description).toMatch(/\w/);
      for (const [status, given] of Object.entries<{ $ref?: string }>(operation.responses)) {
        expect(status).toMatch(/^[1-5]\d\d$/);
        const response = given.$ref ? resolve(given.$ref) : given;
        expect(response).toMatchObject({
          description: expect.stringMatching(/\w/),
          headers: { 'X-Request-ID': expect.anything() },
          content: expect.anything(),
        });
      }
    }
    for (const name of Object.keys(document.components.schemas)) {
      expect(document.components.schemas[name].description, name).toMatch(/\w/);
    }
    walk(document, (_value, path) => expect(path.at(-1) ?? '').not.toContain('~'));
  });

  test('describes only GET, each operation with an id of its own', () => {
    for (const item of Object.values(document.paths)) expect(Object.keys(item as object)).toEqual(['get']);
    const ids = operations.map(([, { operationId }]) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z0-9]+$/);
  });

  test('names every alias beside its operation, and lists it as no operation of its own', () => {
    const aliases = createRoutes(version).flatMap((route) => pathsOf(route).slice(1));
    expect(aliases.length).toBeGreaterThan(5);
    expect(operations.flatMap(([, operation]) => operation['x-aliases'] ?? [])).toEqual(aliases);
    for (const alias of aliases) expect(document.paths).not.toHaveProperty([alias]);
  });

  test('names the server, and the key that no request needs', () => {
    expect(document.servers).toEqual([{ url: '/', description: expect.any(String) }]);
    expect(document.security[0]).toEqual({});
    const named = document.security.flatMap((scheme: object) => Object.keys(scheme));
    expect(named).toEqual(Object.keys(document.components.securitySchemes));
    expect(document.components.securitySchemes.apiKey).toMatchObject({ in: 'header', name: 'X-API-Key' });
  });

  test('resolves every reference, and uses every component', () => {
    const referred = new Set<string>();
    walk(document, (value, path) => {
      if (path.at(-1) !== '$ref') return;
      expect(value).toMatch(/^#\/components\//);
      expect(resolve(value as string), String(value)).toBeTypeOf('object');
      referred.add(value as string);
    });
    for (const kind of ['schemas', 'responses', 'headers']) {
      for (const name of Object.keys(document.components[kind])) {
        expect(referred, name).toContain(`#/components/${kind}/${name}`);
      }
    }
  });

  test('declares every parameter of every path, once', () => {
    for (const [path, { parameters }] of operations) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const declared = parameters.filter((parameter: { in: string }) => parameter.in === 'path');
      expect(declared.map(({ name }: { name: string }) => name)).toEqual(inPath);
      for (const parameter of declared) expect(parameter.required).toBe(true);
      const names = parameters.map(
        (parameter: { in: string; name: string }) => `${parameter.in} ${parameter.name}`,
      );
      expect(new Set(names).size).toBe(names.length);
    }
    const search = document.paths['/v2/messages'].get.parameters.map(({ name }: { name: string }) => name);
    expect(search).toEqual([...searchParameterNames]);
  });

  test('has schemas that compile, and examples that keep to them', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema(document, 'openapi.json');
    walk(document, (value, path) => {
      if (path.at(-1) !== 'schema' && path.at(-2) !== 'schemas') return;
      const pointer = path
        .map((key) => encodeURIComponent(key.replace(/~/g, '~0').replace(/\//g, '~1')))
        .join('/');
      expect(() => ajv.compile({ $ref: `openapi.json#/${pointer}` }), pointer).not.toThrow();
      expect(ajv.validateSchema(value as object)).toBe(true);
    });
    for (const [, { parameters }] of operations) {
      for (const { name, schema, example } of parameters) {
        if (example !== undefined) expect(ajv.compile(schema)(example), name).toBe(true);
      }
    }
    const isMessage = ajv.compile({ $ref: 'openapi.json#/components/schemas/Message' });
    expect(isMessage(document.components.schemas.Message.examples[0])).toBe(true);
  });

  test('shows a record as the service itself would write it', () => {
    expect(parseMessage(exampleMessage)).toMatchObject({
      ok: true,
      message: exampleMessage,
      ignored: [],
      derived: [],
    });
  });

  test('has every code of the error catalogue, with its meaning under its status', () => {
    expect(document.components.schemas.Error.properties.error.enum).toEqual(Object.keys(errorCatalogue));
    for (const [code, { status, meaning }] of Object.entries(errorCatalogue)) {
      const { description } = document.components.responses[`Error${status}`];
      expect(description).toContain(`\`${code}\`: ${meaning}`);
    }
  });

  test('describes every answer that the service really gives', async () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema(document, 'openapi.json');
    for (const [path, { responses }] of servedOperations) {
      const url = path.replace('{messageId}', tokenToEvm.messageId);
      const mediaType = Object.keys(responses[200].content)[0] ?? '';
      for (const [asked, options] of [
        [url, {}],
        [`${url}?nonsense=1`, {}],
        [url.replace(tokenToEvm.messageId, `0x${'0'.repeat(64)}`), {}],
        [url, { method: 'POST' }],
        [url, { headers: { accept: 'image/png' } }],
        [`${url}?${'x'.repeat(40_000)}`, {}],
      ] as const) {
        // A stream has no end to wait for; its headers tell as much.
        const isStream = mediaType === 'text/event-stream' && !('method' in options);
        const answer = await server.ask(asked, isStream ? { ...options, method: 'HEAD' } : options);
        const given = responses[answer.status];
        expect(given, `${asked.slice(0, 80)} ${answer.status}`).toBeDefined();
        const response = given.$ref ? resolve(given.$ref) : given;
        const type = answer.status === 200 ? mediaType : 'application/json';
        expect(answer.headers['content-type']).toBe(`${type}; charset=utf-8`);
        if (type !== 'application/json' || isStream) continue;
        const pointer = ajv.compile(inlined(response.content[type].schema));
        expect({ valid: pointer(answer.json()), errors: pointer.errors }).toEqual({
          valid: true,
          errors: null,
        });
      }
    }
  });
});

describe('header fields', () => {
  /** Of every HTTP answer, or the same on all of ours: security, origins, compression and the connection. */
  const general = new Set([
    ...['date', 'connection', 'keep-alive', 'transfer-encoding', 'content-length', 'content-type'],
    ...['content-encoding', 'vary', 'x-content-type-options', 'content-security-policy', 'x-frame-options'],
    ...['referrer-policy', 'access-control-allow-origin', 'access-control-expose-headers'],
    ...['cross-origin-resource-policy', 'cross-origin-opener-policy'],
  ]);
  /** What makes a route show fields that not every answer of it has. */
  const occasions: Readonly<Record<string, readonly string[]>> = {
    '/v2/messages': ['?limit=1'],
    '/v2/messages/{messageId}': [
      '?waitFor=SENT,SOURCE_FINALIZED,COMMITTED,BLESSED,VERIFYING,VERIFIED,SUCCESS,FAILED',
    ],
    '/v2/lookup': ['?text=LINK'],
    '/v2/messages/reasons': [`?messageId=${tokenToEvm.messageId}`],
    '/v2/lanes/latency': [
      `?sourceChainSelector=${sepolia.chainSelector}&destChainSelector=${fuji.chainSelector}`,
    ],
  };
  /** Answers with 200 only where chains were indexed, or many messages delivered: the others of its statuses are met. */
  const needsMore = /execution-inputs$|manual-execution$|verifierresults|latency$/;
  const namesOf = (response: { headers: object }) =>
    Object.keys(response.headers).map((name) => name.toLowerCase());

  test('are those that real answers have, on every path and for every status that is met', {
    tags: 'slow',
  }, async () => {
    // Simulated, and with a limit: some fields are there only then.
    const own = await startSimulatedServer(sampleMessages, {
      rateLimit: { perSecond: 1_000, burst: 1_000, loopback: true },
    });
    onTestFinished(() => own.close());
    const met = new Map<string, Set<string>>();
    const note = (key: string, headers: object) => {
      const seen = met.get(key) ?? new Set();
      met.set(key, seen);
      for (const name of Object.keys(headers)) if (!general.has(name)) seen.add(name);
    };
    for (const [path, { responses, canonicalPath }] of servedOperations) {
      const url = path.replace('{messageId}', tokenToEvm.messageId);
      const method = path.endsWith('/stream') ? 'HEAD' : 'GET';
      const urls = [url, ...(occasions[canonicalPath] ?? []).map((query) => `${url}${query}`)];
      for (const asked of [...urls, `${url}?nonsense=1`]) {
        const { status, headers } = await own.ask(asked, { method });
        note(`${path} ${status}`, headers);
        if (status !== 200 || headers.etag === undefined) continue;
        const again = await own.ask(asked, { headers: { 'If-None-Match': String(headers.etag) } });
        note(`${path} ${again.status}`, again.headers);
      }
      const rejected = await own.ask(url, { method: 'POST' });
      note(`${path} ${rejected.status}`, rejected.headers);
      if (!needsMore.test(path)) expect(met.has(`${path} 200`), path).toBe(true);
      for (const [key, seen] of met) {
        if (!key.startsWith(`${path} `)) continue;
        const given = responses[key.slice(path.length + 1)];
        expect(given, key).toBeDefined();
        const documented = namesOf(given.$ref ? resolve(given.$ref) : given);
        // Errors are described once for all paths, those without a rate limit too.
        if (given.$ref) expect(documented, key).toEqual(expect.arrayContaining([...seen]));
        else expect({ key, fields: [...seen].sort() }).toEqual({ key, fields: documented.sort() });
      }
    }
  });
});

/** The same schema with its references pointing into the document that ajv knows. */
function inlined(schema: unknown): object {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"openapi.json#/components'));
}

// @module-tag slow: starts a whole deployment; the reading of secrets is in webhooks/configuration.test.ts
/**
 * Recognisable secrets in every place that takes one, every verb and every path tried, with neighbours that repeat what
 * they are told: none of the secrets comes out anywhere.
 */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRedactor } from '../../src/base/url-parts.ts';
import { buildProgram, freshFolder, lanescan, type Outcome, start } from '../cli/program.ts';
import { createTestDatabase, dataTables, type TestDatabase } from '../database.ts';
import { makeMessage } from '../fixtures.ts';

const secrets = {
  databasePassword: 'dbpassword-SECRET-1',
  rpcUser: 'rpcuser-SECRET-2',
  rpcPassword: 'rpcpassword-SECRET-3',
  rpcPath: 'rpcpath-SECRET-4',
  rpcQuery: 'rpcquery SECRET 5',
  hookPath: 'hookpath-SECRET-6',
  hookQuery: 'hookquery-SECRET-7',
  hookKey: Buffer.from('hook-key-SECRET-8-hook-key-SECRET').toString('base64'),
  apiKey: 'apikey-SECRET-9',
  mirrorPassword: 'mirrorpassword-SECRET-10',
};
/** As they stand, and as others may write them. */
const traces = Object.values(secrets).flatMap((secret) => [
  secret,
  encodeURIComponent(secret),
  new URLSearchParams({ x: secret }).toString().slice(2),
  Buffer.from(secret).toString('hex'),
]);
const basic = Buffer.from(`${secrets.rpcUser}:${secrets.rpcPassword}`).toString('base64');

function expectNoSecret(what: string, text: string): void {
  const shown = [...traces, basic].filter((trace) => text.includes(trace));
  expect({ what, shown, where: shown.map((trace) => around(text, trace)) }).toEqual({
    what,
    shown: [],
    where: [],
  });
}

const around = (text: string, trace: string) => {
  const at = text.indexOf(trace);
  return text.slice(Math.max(0, at - 200), at + trace.length + 50);
};

/** A neighbour that answers every request with all it was told: path, query and credentials. */
async function startParrot(status: number) {
  const server = createServer((request, response) => {
    const { authorization = '' } = request.headers;
    const told = Buffer.from(authorization.replace('Basic ', ''), 'base64').toString();
    const words = `Cannot ${request.method} ${request.url} ${decodeURIComponent(request.url ?? '').replaceAll('+', ' ')} for ${told}`;
    request.resume().on('end', () => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32000, message: words } }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

let database: TestDatabase;
let folder: string;
let env: Record<string, string>;
let config: string;
const parrots: { readonly host: string; close(): void }[] = [];

beforeAll(async () => {
  await buildProgram();
  database = await createTestDatabase();
  folder = freshFolder();
  for (const status of [401, 404, 500, 200]) parrots.push(await startParrot(status));
  const [node401, hook404, node500, node200] = parrots.map(({ host }) => host);
  const rpc = (host = '') =>
    `http://${secrets.rpcUser}:${secrets.rpcPassword}@${host}/v3/${secrets.rpcPath}?key=${encodeURIComponent(secrets.rpcQuery)}`;
  env = {
    DATABASE_URL: database.url.replace(
      'postgresql:///',
      `postgresql://lanescan:${secrets.databasePassword}@localhost/`,
    ),
    RPC_401: rpc(node401),
    RPC_500: rpc(node500),
    RPC_200: rpc(node200),
    RPC_CLOSED: rpc('127.0.0.1:9'),
    OPS: `whsec_${secrets.hookKey}`,
    HOOK: `http://${hook404}/services/${secrets.hookPath}?token=${secrets.hookQuery}`,
  };
  config = path.join(folder, 'lanescan.yaml');
  writeFileSync(
    config,
    [
      // biome-ignore-start lint/suspicious/noTemplateCurlyInString: that is how the file has it
      'networks:',
      '  - network: ethereum-testnet-sepolia',
      '    rpc: ["${RPC_401}", "${RPC_500}", "${RPC_200}", "${RPC_CLOSED}"]',
      '    routers: ["0x0BF3dE8c5D3e8A2B34D2BEeB17ABfCeBaf363A59"]',
      'webhooks:',
      '  - name: ops',
      '    url: ${HOOK}',
      '    secret: ${OPS}',
      // biome-ignore-end lint/suspicious/noTemplateCurlyInString: that is how the file has it
      '    allowPrivate: true',
      'apiKeys:',
      `  - { name: partner, sha256: ${createHash('sha256').update(secrets.apiKey).digest('hex')}, perSecond: 5, burst: 5 }`,
    ].join('\n'),
  );
  writeFileSync(path.join(folder, 'records.ndjson'), `${JSON.stringify(makeMessage({ number: 1 }))}\n`);
});
afterAll(async () => {
  for (const parrot of parrots) parrot.close();
  await database.drop();
});

const withConfig = ['--config', 'HERE'];
const { messageId } = makeMessage({ number: 1 });

describe('no verb shows a secret', () => {
  const verbs: readonly (readonly [code: number, ...args: string[]])[] = [
    [0, 'migrate'],
    [0, 'import', 'RECORDS'],
    [1, 'doctor', '--port', '0'],
    [0, 'search'],
    [0, 'search', '--json'],
    [0, 'show', messageId],
    [0, 'lanes'],
    [0, 'audit'],
    [0, 'export', '--format', 'ndjson'],
    [0, 'webhooks', 'list'],
    [1, 'webhooks', 'test', 'ops'],
    [0, 'webhooks', 'replay', 'ops', '--after', '0'],
    [1, 'webhooks', 'replay', 'nobody', '--after', '0'],
    [1, 'mirror', 'MIRROR', '--once'],
  ];

  const run = (args: readonly string[], given: Readonly<Record<string, string>> = {}): Promise<Outcome> =>
    lanescan(
      args.map((arg) =>
        arg === 'HERE'
          ? config
          : arg === 'RECORDS'
            ? path.join(folder, 'records.ndjson')
            : arg === 'MIRROR'
              ? `http://lanescan:${secrets.mirrorPassword}@${parrots[1]?.host}/`
              : arg,
      ),
      { env: { ...env, ...given } },
    );

  test.each(verbs.map(([code, ...args]) => ({ code, args, what: args.join(' ') })))(
    '$what',
    async ({ code, args, what }) => {
      const outcome = await run([...args, ...withConfig]);
      expect(outcome).toMatchObject({ code });
      expectNoSecret(what, `${outcome.stdout}${outcome.stderr}`);
    },
  );

  test.each([
    [
      'a database that is away',
      { DATABASE_URL: `postgresql://lanescan:${secrets.databasePassword}@127.0.0.1:9/x` },
    ],
    ['a URL that is none', { DATABASE_URL: `postgresql://lanescan:${secrets.databasePassword}/@host/x` }],
    ['another kind of URL', { DATABASE_URL: `mysql://lanescan:${secrets.databasePassword}@host/x` }],
    [
      'a password among the parameters',
      { DATABASE_URL: `postgresql://127.0.0.1:9/x?password=${secrets.databasePassword}` },
    ],
    ['an RPC URL that is none', { RPC_401: `http//${secrets.rpcPath}` }],
    ['a secret that is none', { OPS: secrets.hookPath }],
    ['a target that is none', { HOOK: `ftp://host/${secrets.hookPath}` }],
    ['a target with a password', { HOOK: `http://x:${secrets.hookPath}@host/` }],
  ])('with %s', async (what, given) => {
    for (const verb of ['doctor', 'serve', 'index', 'search']) {
      // A verb that got further than it should would not end.
      if (verb === 'index' && !('RPC_401' in given) && !('DATABASE_URL' in given)) continue;
      if (verb === 'serve' && 'RPC_401' in given) continue;
      const port = verb === 'doctor' || verb === 'serve' ? ['--port', '0'] : [];
      const { stdout, stderr } = await run([verb, ...port, ...withConfig], given);
      expect(`${stdout}${stderr}`.length).toBeGreaterThan(0);
      expectNoSecret(`${verb} with ${what}`, `${stdout}${stderr}`);
    }
  });
});

test('no path, header, log line or table of a server that indexes and delivers shows one', async () => {
  const server = start(['serve', '--index', '--port', '0', '--log-level', 'debug', '--config', config], {
    env,
  });
  const [, url = ''] = await server.untilSaid(/listens on (http:\/\/127\.0\.0\.1:\d+)/);
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    // Until both have failed in the words of their neighbours.
    await lanescan(['import', path.join(folder, 'records.ndjson')], { env });
    await lanescan(['webhooks', 'replay', 'ops', '--after', '0', '--config', config], { env });
    await expect
      .poll(async () => (await fetch(`${url}/metrics`)).text(), { timeout: 120_000, interval: 200 })
      .toMatch(/lanescan_webhook_deliveries\{[^}]*\} [1-9]/);
    await expect
      .poll(() => server.said().stderr, { timeout: 120_000, interval: 200 })
      .toMatch(/HTTP 404|Cannot|401/);

    const paths = [
      ...[
        '/',
        '/docs',
        '/openapi.json',
        '/healthz',
        '/readyz',
        '/metrics',
        '/nothing',
        '/v2/networks',
        '/v2/stats',
      ],
      ...[
        '/v2/messages',
        '/v2/messages?sender=x',
        `/v2/messages/${messageId}`,
        `/v2/messages/${messageId}/history`,
      ],
      ...['/v2/messages/export', '/v2/lanes'],
    ];
    for (const at of paths) {
      for (const headers of [
        { Authorization: `Bearer ${secrets.apiKey}` },
        { 'X-API-Key': secrets.apiKey },
      ]) {
        const answer = await fetch(`${url}${at}`, { headers: headers as Record<string, string> });
        expectNoSecret(at, `${JSON.stringify([...answer.headers])} ${await answer.text()}`);
      }
    }
    for (const table of await dataTables(client)) {
      const { rows } = await client.query(`select t::text as row from ${table} t`);
      expectNoSecret(`table ${table}`, rows.map(({ row }) => row).join('\n'));
    }
  } finally {
    await client.end();
    server.child.kill('SIGTERM');
  }
  const { stdout, stderr } = await server.outcome;
  expectNoSecret('the log', `${stdout}${stderr}`);
});

describe('what others say', () => {
  test.each([
    ['https://x.example/v3/0123456789', 'no project 0123456789', 'no project …'],
    ['https://x.example/hook/abcdef?token=ghijkl', 'Cannot POST /hook/abcdef?token=ghijkl', 'Cannot POST …'],
    ['https://user12:pass34@x.example/', 'user12 may not, with pass34', '… may not, with …'],
    ['https://x.example/?key=a%20secret', 'key a secret is wrong, also a%20secret', 'key … is wrong, also …'],
    ['https://x.example/%zz0000', 'nothing at %zz0000', 'nothing at …'],
    ['https://x.example/v1/rpc', 'nothing at /v1/rpc', 'nothing at …'],
    ['https://x.example/', 'not found: /', 'not found: /'],
  ])('of %s: %s', (url, said, shown) => {
    expect(createRedactor(new URL(url))(said)).toBe(shown);
  });
});

// @module-tag slow: starts a whole deployment; the reading of secrets is in webhooks/configuration.test.ts
/**
 * Recognisable secrets in every place that takes one, and hosts that only the operator knows, all of it failing, with neighbours
 * that repeat what they are told. Every verb and every path is tried: no secret comes out anywhere, and no host over HTTP.
 */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRedactor } from '../../src/base/url-parts.ts';
import { problemKinds, problemSentences } from '../../src/domain/networks/indexing-problem.ts';
import { networks } from '../../src/domain/networks/networks.ts';
import type { Store } from '../../src/store/store.ts';
import { buildProgram, configFile, freshFolder, lanescan, type Outcome, start } from '../cli/program.ts';
import { dataTables, openTestStore } from '../database.ts';
import { fuji, makeMessage, makeSnapshot, sepolia } from '../fixtures.ts';
import { connectTo } from '../postgres.ts';
import { openApiDocument } from './request-generator.ts';

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

/** Each place has its own host and port, so that a leak names where it came from. `.invalid` never resolves. */
const planted = {
  rpc: 'planted-rpc.invalid:54321',
  verifier: 'planted-verifier.invalid:54322',
  hook: 'planted-hook.invalid:54323',
  replica: 'planted-replica.invalid:54324',
  mirror: 'planted-mirror.invalid:54325',
  closed: '127.0.0.1:54326',
};
const hosts = Object.values(planted).flatMap((place) =>
  place.split(':').filter((part) => part !== '127.0.0.1'),
);

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

const message = makeMessage({ number: 1 });
const { messageId } = message;
/** A network whose problem an older version stored, without a kind. */
const OLD = 'ethereum-mainnet';
const OLD_KEY = 'planted-key';
const routers = ['0x0BF3dE8c5D3e8A2B34D2BEeB17ABfCeBaf363A59'];

let store: Store & { readonly url: string };
let env: Record<string, string>;
const records = path.join(freshFolder(), 'records.ndjson');
const parrots: { readonly host: string; close(): void }[] = [];
// biome-ignore-start lint/suspicious/noTemplateCurlyInString: that is how the file has it
const config = configFile(
  JSON.stringify({
    networks: [
      { network: fuji.name, rpc: ['${RPC_401}', '${RPC_500}', '${RPC_200}', '${RPC_CLOSED}'], routers },
      {
        network: sepolia.name,
        rpc: ['${RPC_PLANTED}', '${RPC_AWAY}'],
        routers,
        verifierResults: '${VERIFIER}',
      },
    ],
    webhooks: [
      { name: 'ops', url: '${HOOK}', secret: '${OPS}', allowPrivate: true },
      { name: 'planted', url: '${HOOK_PLANTED}', secret: '${OPS}', allowPrivate: true },
    ],
    apiKeys: [
      {
        name: 'partner',
        sha256: createHash('sha256').update(secrets.apiKey).digest('hex'),
        perSecond: 5,
        burst: 5,
      },
    ],
  }),
);
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: that is how the file has it

beforeAll(async () => {
  await buildProgram();
  store = await openTestStore();
  for (const status of [401, 404, 500, 200]) parrots.push(await startParrot(status));
  const [node401, hook404, node500, node200] = parrots.map(({ host }) => host);
  const rpc = (host = '') =>
    `http://${secrets.rpcUser}:${secrets.rpcPassword}@${host}/v3/${secrets.rpcPath}?key=${encodeURIComponent(secrets.rpcQuery)}`;
  const hook = (host = '') => `http://${host}/services/${secrets.hookPath}?token=${secrets.hookQuery}`;
  const credentials = `lanescan:${secrets.databasePassword}`;
  env = {
    DATABASE_URL: store.url.replace('postgresql:///', `postgresql://${credentials}@localhost/`),
    RPC_401: rpc(node401),
    RPC_500: rpc(node500),
    RPC_200: rpc(node200),
    RPC_CLOSED: rpc('127.0.0.1:9'),
    RPC_PLANTED: rpc(planted.rpc),
    RPC_AWAY: rpc(planted.closed),
    VERIFIER: rpc(planted.verifier),
    OPS: `whsec_${secrets.hookKey}`,
    HOOK: hook(hook404),
    HOOK_PLANTED: hook(planted.hook),
  };
  writeFileSync(records, `${JSON.stringify(message)}\n`);
});
afterAll(async () => {
  for (const parrot of parrots) parrot.close();
  await store.close();
});

describe('no verb shows a secret', () => {
  const verbs: readonly (readonly [code: number, ...args: string[]])[] = [
    [0, 'migrate'],
    [0, 'import', records],
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

  const password = secrets.databasePassword;
  const run = (args: readonly string[], given: Readonly<Record<string, string>> = {}): Promise<Outcome> => {
    const mirror = `http://lanescan:${secrets.mirrorPassword}@${parrots[1]?.host}/`;
    const all = [...args.map((arg) => (arg === 'MIRROR' ? mirror : arg)), '--config', config];
    return lanescan(all, { env: { ...env, ...given } });
  };

  test.each(verbs.map(([code, ...args]) => ({ code, args, what: args.join(' ') })))(
    '$what',
    async ({ code, args, what }) => {
      const outcome = await run(args);
      expect(outcome).toMatchObject({ code });
      expectNoSecret(what, `${outcome.stdout}${outcome.stderr}`);
    },
  );

  test.each([
    ['a database that is away', { DATABASE_URL: `postgresql://me:${password}@127.0.0.1:9/x` }],
    ['a URL that is none', { DATABASE_URL: `postgresql://me:${password}/@host/x` }],
    ['another kind of URL', { DATABASE_URL: `mysql://me:${password}@host/x` }],
    ['a password as a parameter', { DATABASE_URL: `postgresql://127.0.0.1:9/x?password=${password}` }],
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
      const { stdout, stderr } = await run([verb, ...port], given);
      expect(`${stdout}${stderr}`.length).toBeGreaterThan(0);
      expectNoSecret(`${verb} with ${what}`, `${stdout}${stderr}`);
    }
  });
});

describe('a server that indexes and delivers', () => {
  const answerTo = async (url: string, headers: Record<string, string>) => {
    const answer = await fetch(url, { headers, signal: AbortSignal.timeout(60_000) });
    const text = url.includes('stream') ? await beginningOf(answer) : await answer.text();
    return `${JSON.stringify([...answer.headers])} ${text}`;
  };

  test('shows no secret in paths, headers, log lines and tables, and no host in paths', async () => {
    await store.apply([makeSnapshot(message)]);
    await store.mirror.heartbeat(`http://${planted.mirror}/`);
    const replica = `postgresql://lanescan:${secrets.databasePassword}@${planted.replica}/x`;
    const args = ['serve', '--index', '--port', '0', '--log-level', 'debug', '--config', config];
    const server = start(args, { env: { ...env, DATABASE_REPLICA_URL: replica } });
    const url = await server.untilListening();
    const client = await connectTo(store.url);
    try {
      // Facts for the webhooks to fail with.
      for (const name of ['ops', 'planted']) await store.webhooks.rewind(name, '0');
      const old = networks.find(({ name }) => name === OLD);
      await store.index.reportProgress(old?.selector ?? '', null, {
        kind: 'of another version' as 'unknown',
        text: `${planted.rpc}: eth_chainId: no connection to http://${planted.rpc}/${OLD_KEY}`,
      });
      // Until everything has failed, in the words of the neighbours: in the log, and in the database.
      const said = () => server.said().stderr;
      for (const place of ['planted-rpc.invalid', planted.closed, 'ENOTFOUND planted-hook.invalid'])
        await expect.poll(said).toContain(place);
      await expect.poll(said).toMatch(/HTTP 404|Cannot|401/);
      const metrics = async () => (await fetch(`${url}/metrics`)).text();
      await expect.poll(metrics).toMatch(/lanescan_webhook_deliveries\{[^}]*\} [1-9]/);
      await expect.poll(metrics).toContain('lanescan_replica_used{replica="1"} 0');
      const problem = async () =>
        (await store.networkProgress()).find(({ selector }) => selector === sepolia.chainSelector)?.problem;
      await expect.poll(problem).toMatch(/planted-rpc|54326/);

      const lane = `sourceChainSelector=${sepolia.chainSelector}&destChainSelector=${fuji.chainSelector}`;
      const documented = Object.keys(openApiDocument.paths).map((at) => at.replace(/\{\w+\}/g, messageId));
      const others = [
        ...['/', '/network', '/nothing', '/docs', '/openapi.json', '/healthz', '/readyz', '/metrics'],
        ...[
          `/v2/lanes/latency?${lane}`,
          '/v2/networks?indexed=true',
          '/v2/messages?sender=x',
          '/v2/messages?cursor=x',
        ],
        ...[`/v2/messages/0x${'ab'.repeat(32)}`, `/v2/messages/${messageId}?waitFor=SUCCESS&timeout=1`],
      ];
      const key = secrets.apiKey;
      for (const at of new Set([...documented, ...others])) {
        for (const headers of [{}, { Authorization: `Bearer ${key}` }, { 'X-API-Key': key }]) {
          const text = await answerTo(`${url}${at}`, headers as Record<string, string>);
          expectNoSecret(at, text);
          const shown = at === '/metrics' ? [] : [...hosts, OLD_KEY].filter((trace) => text.includes(trace));
          expect({ at, shown }).toEqual({ at, shown: [] });
        }
      }
      for (const table of await dataTables(client)) {
        const { rows } = await client.query(`select t::text as row from ${table} t`);
        expectNoSecret(`table ${table}`, rows.map(({ row }) => row).join('\n'));
      }

      // Visitors see the kind of each problem, also of one that another version stored.
      const { data } = (await (await fetch(`${url}/v2/networks?indexed=true`)).json()) as {
        data: readonly { name: string; indexing: { problem: string; problemKind: string } }[];
      };
      const problems = Object.fromEntries(data.map(({ name, indexing }) => [name, indexing]));
      for (const [name, kind] of Object.entries({ [sepolia.name]: 'unreachable', [OLD]: 'unknown' } as const))
        expect(problems[name]).toMatchObject({ problemKind: kind, problem: problemSentences[kind] });
      expect(problemKinds).toHaveLength(new Set(Object.values(problemSentences)).size);
    } finally {
      await client.end();
      server.child.kill('SIGTERM');
    }
    const { stdout, stderr } = await server.outcome;
    expectNoSecret('the log', `${stdout}${stderr}`);
  }, 900_000);
});

async function beginningOf(answer: Response): Promise<string> {
  const reader = answer.body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return new TextDecoder().decode(value);
}

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

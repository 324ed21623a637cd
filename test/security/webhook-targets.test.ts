// @module-tag slow: starts the program for every kind of certificate
/**
 * Where the service can be led by those who own a name or a certificate. test/webhooks/target.test.ts has the
 * addresses, spellings and redirects; here are names whose answer changes, and TLS.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import dns from 'node:dns';
import { readFileSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import { connect } from 'node:net';
import path from 'node:path';
import { afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createSender, publicLookup } from '../../src/webhooks/sender.ts';
import {
  buildProgram,
  configFile,
  freshFolder,
  lanescanOn,
  runProgram,
  sepoliaYaml,
} from '../cli/program.ts';
import { listening, listenWith } from '../listening.ts';
import { SECRET, startReceiver, subscriptionTo } from '../webhooks/receiver.ts';

const timings = { connectMs: 2_000, totalMs: 5_000 };
const PUBLIC = '8.8.8.8';

/** From now on the system's resolver gives these answers, one after the other, and then the last one for ever. */
function resolveTo(...answers: readonly (readonly string[])[]) {
  let asked = 0;
  const resolver = vi.spyOn(dns, 'lookup').mockImplementation(((
    _name: string,
    _options: unknown,
    callback: (error: null, addresses: dns.LookupAddress[]) => void,
  ) => {
    const answer = answers[Math.min(asked++, answers.length - 1)] ?? [];
    const addresses = answer.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    process.nextTick(() => callback(null, addresses));
  }) as typeof dns.lookup);
  syncBuiltinESMExports();
  return { count: () => asked, restore: () => resolver.mockRestore() };
}
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

describe('a name in the hands of somebody else', () => {
  /** A sender to this name, whose addresses must be public. */
  function senderTo(name: string, port: number) {
    const url = new URL(`http://${name}:${port}/`);
    const subscription = { ...subscriptionTo('http://127.0.0.1/'), url, allowPrivate: false };
    const sender = createSender(subscription, timings, 'test', 1);
    onTestFinished(() => sender.close());
    return sender;
  }

  test.each([
    ['a private address', ['10.0.0.5']],
    ['this machine', ['127.0.0.1']],
    ['this machine, in IPv6', ['::1']],
    ['the metadata of a cloud', ['169.254.169.254']],
    ['a private address behind a public one', [PUBLIC, '192.168.1.1']],
    ['a private address in an IPv6 one', ['::ffff:10.0.0.5']],
    ['nothing at all', []],
  ])('that resolves to %s is not connected to', async (_what, addresses) => {
    const receiver = await startReceiver();
    resolveTo(addresses);
    await expect(senderTo('hook.example', receiver.port).send({}, '{}')).rejects.toThrow(
      addresses.length > 0 ? /hook\.example \(\S+\) is not a public address/ : 'hook.example has no address',
    );
    expect(receiver.receipts).toEqual([]);
  });

  test('is asked once for a connection: what was judged is what is connected to', async () => {
    const resolver = resolveTo([PUBLIC], ['127.0.0.1']);
    const chosen = await new Promise<string[]>((resolve) => {
      const seen: string[] = [];
      const socket = connect({ host: 'rebind.example', port: 9, lookup: publicLookup });
      socket.on('lookup', (_error, address) => {
        seen.push(address);
        // Before the first packet: nobody at that address hears of this test.
        socket.destroy();
      });
      socket.on('error', () => undefined).on('close', () => resolve(seen));
    });
    expect(chosen).toEqual([PUBLIC]);
    expect(resolver.count()).toBe(1);
  });

  test('is judged anew for each connection: having been public once does not help', async () => {
    const receiver = await startReceiver();
    const judged = (name: string) =>
      new Promise((resolve) =>
        publicLookup(name, { all: true }, (error, addresses) => resolve(error ?? addresses)),
      );
    resolveTo([PUBLIC], ['127.0.0.1']);
    expect(await judged('hook.example')).toEqual([{ address: PUBLIC, family: 4 }]);
    await expect(senderTo('hook.example', receiver.port).send({}, '{}')).rejects.toThrow(
      'hook.example (127.0.0.1) is not a public address',
    );
    expect(receiver.receipts).toEqual([]);
  });
});

test('an RPC endpoint cannot send the indexer elsewhere: its redirects are not followed', async () => {
  const asked = { node: 0, inner: 0 };
  const inner = await listenWith((_request, response) => {
    asked.inner++;
    response.end('{"jsonrpc":"2.0","id":1,"result":"0xaa36a7"}');
  });
  for (const status of [301, 302, 303, 307, 308]) {
    const node = await listenWith((_request, response) => {
      asked.node++;
      response.writeHead(status, { location: `${inner.href}latest/meta-data` }).end();
    });
    const config = configFile(sepoliaYaml(node.origin));
    const nowhere = { url: 'postgresql://127.0.0.1:9/nothing' };
    const { stdout } = await lanescanOn(nowhere, 'doctor', '--config', config, '--port', '0');
    expect(stdout).toMatch(/redirects/);
  }
  expect(asked.node).toBeGreaterThanOrEqual(5);
  expect(asked.inner).toBe(0);
});

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
if (!hasOpenssl) process.stderr.write('\nNO OPENSSL: the tests of HTTPS webhooks are skipped.\n\n');

describe.runIf(hasOpenssl)('a webhook over HTTPS', () => {
  let folder: string;
  beforeAll(async () => {
    await buildProgram();
    folder = freshFolder();
    for (const name of ['localhost', 'other.example']) {
      execFileSync(
        'openssl',
        [
          ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
          ...['-keyout', `${name}.key`, '-out', `${name}.pem`, '-days', '2'],
          ...['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`],
        ],
        { cwd: folder, stdio: 'ignore' },
      );
    }
  });

  const place = (file: string) => path.join(folder, file);

  async function tryOut(certificate: string, env: Readonly<Record<string, string>>) {
    let requests = 0;
    const listener: RequestListener = (request, response) => {
      requests++;
      request.resume().on('end', () => response.end());
    };
    const port = await listening(
      createTlsServer(
        { key: readFileSync(place(`${certificate}.key`)), cert: readFileSync(place(`${certificate}.pem`)) },
        listener,
      ),
    );
    writeFileSync(
      place('lanescan.yaml'),
      `webhooks:\n  - name: ops\n    url: https://localhost:${port}/hook\n    secret: \${OPS}\n    allowPrivate: true\n`,
    );
    const setting = { cwd: folder, env: { OPS: SECRET, ...env } };
    const outcome = await runProgram(['webhooks', 'test', 'ops'], setting);
    return { ...outcome, requests };
  }

  test.each([
    [
      'is not delivered where nobody vouches for its certificate',
      { certificate: 'localhost', trusted: undefined },
      { code: 1, requests: 0, said: /did not accept the test event .*self-signed certificate/ },
    ],
    [
      'is not delivered where the certificate is for another name',
      { certificate: 'other.example', trusted: 'other.example.pem' },
      { code: 1, requests: 0, said: /does not match certificate/ },
    ],
    [
      'is delivered where the operator vouches for it, with NODE_EXTRA_CA_CERTS',
      { certificate: 'localhost', trusted: 'localhost.pem' },
      { code: 0, requests: 1, said: /^ops accepted the test event/ },
    ],
  ])('%s', async (_, { certificate, trusted }, { said, ...expected }) => {
    const outcome = await tryOut(certificate, trusted ? { NODE_EXTRA_CA_CERTS: place(trusted) } : {});
    expect(outcome).toMatchObject(expected);
    expect(expected.code === 0 ? outcome.stdout : outcome.stderr).toMatch(said);
  });
});

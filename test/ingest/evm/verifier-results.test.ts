/** The service that tells of verifications before they are on chain: what it says, and everything it may do wrong. */
import type { RequestListener } from 'node:http';
import { describe, expect, test } from 'vitest';
import { createVerifierResults } from '../../../src/ingest/evm/verifier-results.ts';
import { evmAddress, hashOf, sepolia, verifierAddress } from '../../fixtures.ts';
import { listenWith } from '../../listening.ts';

const messageId = hashOf('message');
const alice = verifierAddress(sepolia, 'Alice');
const bob = verifierAddress(sepolia, 'Bob');

const options = { userAgent: 'lanescan/test', signal: new AbortController().signal };
const answering = (body: unknown, status = 200) =>
  listenWith((_, response) => {
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });

/** One result as the service writes it, with more around it than anybody needs. */
function result(overrides: Readonly<Record<string, unknown>> = {}) {
  return {
    verifierResult: {
      message_id: messageId,
      message: { version: 1, data: '0x68656c6c6f' },
      message_ccv_addresses: [alice.toLowerCase()],
      message_executor_address: evmAddress('executor'),
      ccv_data: '0x49FF34ed0080',
      timestamp: '2026-01-01T01:00:00.123456789Z',
      verifier_source_address: alice.toLowerCase(),
      verifier_dest_address: bob.toLowerCase(),
      ...overrides,
    },
    metadata: { verifierName: 'Alice', attestationTimestamp: '2026-01-01T01:00:01Z' },
  };
}

const answer = (...results: readonly unknown[]) => ({ success: true, messageID: messageId, results });
const completed = async (body: unknown) =>
  createVerifierResults(await answering(body), options).completed(messageId);

describe('what is completed', () => {
  test('are all results, by the verifier’s address on the source, in its canonical spelling', async () => {
    expect(await completed(answer(result(), result({ verifier_source_address: bob })))).toEqual([
      { verifier: alice, data: '0x49ff34ed0080', at: '2026-01-01T01:00:00.123Z' },
      { verifier: bob, data: '0x49ff34ed0080', at: '2026-01-01T01:00:00.123Z' },
    ]);
  });

  test('is named by the address on the destination where the source is no EVM chain', async () => {
    for (const source of [hashOf('svm'), '0x', '', undefined, `0x${'0'.repeat(40)}`]) {
      expect(await completed(answer(result({ verifier_source_address: source })))).toMatchObject([
        { verifier: bob },
      ]);
    }
  });

  test('has no time where the service tells none, or one that cannot be', async () => {
    for (const timestamp of [undefined, null, 17, 'soon', '0001-01-01T00:00:00Z', '2999-01-01T00:00:00Z']) {
      expect(await completed(answer(result({ timestamp })))).toMatchObject([{ verifier: alice, at: null }]);
    }
  });

  test('is nothing where the service knows nothing', async () => {
    expect(await completed(answer())).toEqual([]);
    expect(await completed({ success: true, results: null })).toEqual([]);
    expect(await completed(answer(result({ ccv_data: '0x' })))).toEqual([]);
    const unknown = await answering({ success: false, error: 'not found' }, 404);
    expect(await createVerifierResults(unknown, options).completed(messageId)).toEqual([]);
  });
});

test('asks below the URL that was given, with its query and its credentials', async () => {
  const asked: unknown[] = [];
  const url = await listenWith((request, response) => {
    asked.push([request.method, request.url, request.headers.authorization, request.headers['user-agent']]);
    response.end(JSON.stringify(answer()));
  });
  await createVerifierResults(url, options).completed(messageId);
  await createVerifierResults(new URL(`${url.href}all/?key=k`), options).completed(messageId);
  await createVerifierResults(new URL(`http://me:secret@${url.host}/all`), options).completed(messageId);
  const path = `/v1/verifierresults/${messageId}`;
  expect(asked).toEqual([
    ['GET', path, undefined, 'lanescan/test'],
    ['GET', `/all${path}?key=k`, undefined, 'lanescan/test'],
    ['GET', `/all${path}`, `Basic ${btoa('me:secret')}`, 'lanescan/test'],
  ]);
});

describe('an answer is rejected', () => {
  const cases: readonly (readonly [what: string, body: unknown, problem: RegExp])[] = [
    ['that is no JSON', '<html>', /broken JSON/],
    ['that is cut off', '{"success":true,"results":[', /broken JSON/],
    ['that is no object', [], /the answer is no object/],
    ['that reports a failure', { success: false, results: [] }, /failure of its own/],
    ['without word of success', { results: [] }, /failure of its own/],
    ['about another message', { ...answer(), messageID: hashOf('other') }, /about another message/],
    [
      'with a result of another message',
      answer(result({ message_id: hashOf('other') })),
      /results\[0\].*another/,
    ],
    ['whose results are no list', { success: true, results: {} }, /`results` is no list/],
    ['with too many results', answer(...Array.from({ length: 65 }, () => result())), /more than 64/],
    ['with a result that is none', answer(null), /results\[0\] is no object/],
    ['with an empty result', answer({}), /results\[0\]\.verifierResult is no object/],
    [
      'without a verifier',
      answer(result({ verifier_source_address: 'Alice', verifier_dest_address: null })),
      /results\[0\].* names no verifier/,
    ],
    ['without data', answer(result({ ccv_data: null })), /ccv_data is not hex/],
    ['with half a byte', answer(result({ ccv_data: '0x123' })), /ccv_data is not hex/],
    ['with data of a megabyte', answer(result({ ccv_data: `0x${'00'.repeat(1e6)}` })), /16384 bytes/],
    ['that does not end', ' '.repeat(5_000_000), /more than 4194304 bytes/],
  ];
  test.each(cases)('%s', async (_what, body, problem) => {
    await expect(completed(body)).rejects.toThrow(problem);
  });

  test.each([301, 307, 400, 429, 500, 503])('with status %i, and no redirect is followed', async (status) => {
    let asked = 0;
    const url = await listenWith((_, response) => {
      asked++;
      response.writeHead(status, { Location: '/elsewhere' }).end();
    });
    await expect(createVerifierResults(url, options).completed(messageId)).rejects.toThrow(
      `answered ${status}`,
    );
    expect(asked).toBe(1);
  });
});

describe('the wait ends', () => {
  const slow: readonly (readonly [what: string, listener: RequestListener])[] = [
    ['before the first byte', () => undefined],
    [
      'in the middle of the answer',
      (_, response) => {
        response.write('{"success":');
      },
    ],
  ];
  test.each(slow)('when the service is silent %s', async (_what, listener) => {
    const url = await listenWith(listener);
    await expect(
      createVerifierResults(url, { ...options, timeoutMs: 50 }).completed(messageId),
    ).rejects.toThrow('no whole answer within 0.05 s');
  });

  test('at once when the program stops', async () => {
    const stopping = new AbortController();
    const url = await listenWith(() => stopping.abort(new Error('stopping')));
    const results = createVerifierResults(url, { ...options, signal: stopping.signal });
    await expect(results.completed(messageId)).rejects.toThrow('stopping');
    await expect(results.completed(messageId)).rejects.toThrow('stopping');
  });
});

test('errors show the host and nothing else of the URL', async () => {
  const url = await answering('nonsense');
  const secret = new URL(`http://me:password@${url.host}/path-key?token=query-key`);
  const rejected = new URL('http://me:password@127.0.0.1:1/path-key?token=query-key');
  for (const target of [secret, rejected]) {
    const error: unknown = await createVerifierResults(target, options)
      .completed(messageId)
      .catch((reason: unknown) => reason);
    expect(String(error)).toContain(target.host);
    expect(String(error)).not.toMatch(/password|path-key|query-key/);
  }
});

/** The ecosystem's own client, pointed at the service: it works as it is. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { compareNewestFirst, matches } from '../../src/domain/filters/matches.ts';
import { parseSearch } from '../../src/domain/filters/search-parameters.ts';
import type { Message } from '../../src/domain/message.ts';
import { type RunningServer, startServer, startServerForTest } from '../api/running-server.ts';
import { batch, evmToSvm, sampleMessages, svmToEvm, tokenToEvm } from '../fixtures/sample-messages.ts';
import { fuji, hashOf, makeMessage, makeSnapshot, sepolia, solanaDevnet, svmSignature } from '../fixtures.ts';
import { CCIPAPIClient, type MessageSearchFilters, type MessageSearchResult } from '../lab/sdk.ts';
import { silent } from '../lab/sdk-chain.ts';
import { clientErrorOf } from './lab-service.ts';

const newestFirst = [...sampleMessages].sort(compareNewestFirst);
const ids = (messages: readonly { readonly messageId: string }[]) =>
  messages.map(({ messageId }) => messageId);

let server: RunningServer;
/** A new client each time: one remembers messages for some seconds. */
const client = (url = server.url) => new CCIPAPIClient(url, { logger: silent });

beforeAll(async () => {
  server = await startServer(sampleMessages);
});
afterAll(() => server.close());

async function collect(messages: AsyncIterable<MessageSearchResult>) {
  const collected: MessageSearchResult[] = [];
  for await (const message of messages) collected.push(message);
  return collected;
}

/** What the domain's reference expects of the same filters. */
function expected(filters: MessageSearchFilters): readonly Message[] {
  const raw = Object.entries(filters).map(([name, value]) => [name, String(value)] as const);
  const { filters: parsed } = parseSearch(raw);
  return newestFirst.filter((message) => matches(parsed, message));
}

const token = tokenToEvm.tokenAmounts[0]?.sourceTokenAddress ?? '';

describe('searchMessages', () => {
  const selector = ({ chainSelector }: { chainSelector: string }) => BigInt(chainSelector);
  const lane = { sourceChainSelector: selector(sepolia), destChainSelector: selector(fuji) };
  const parties = { sender: tokenToEvm.sender, receiver: tokenToEvm.receiver };
  const others = { sourceTransactionHash: tokenToEvm.sendTransactionHash, sourceTokenAddress: token };
  const cases: readonly (readonly [what: string, filters: MessageSearchFilters, count: number])[] = [
    ['nothing', {}, 31],
    ['sender', { sender: tokenToEvm.sender }, 27],
    ['sender in lower case', { sender: tokenToEvm.sender.toLowerCase() }, 27],
    ['sender of SVM', { sender: svmToEvm.sender }, 1],
    ['receiver', { receiver: tokenToEvm.receiver }, 30],
    ['receiver of SVM', { receiver: evmToSvm.receiver }, 1],
    ['sourceChainSelector', { sourceChainSelector: BigInt(solanaDevnet.chainSelector) }, 1],
    ['destChainSelector', { destChainSelector: BigInt(solanaDevnet.chainSelector) }, 1],
    ['sourceTransactionHash', { sourceTransactionHash: hashOf('batch') }, 3],
    ['sourceTransactionHash of SVM', { sourceTransactionHash: svmToEvm.sendTransactionHash }, 1],
    ['sourceTokenAddress', { sourceTokenAddress: token }, 2],
    ['readyForManualExecOnly', { readyForManualExecOnly: true }, 4],
    ['readyForManualExecOnly: false', { readyForManualExecOnly: false }, 31],
    ['a lane', lane, 28],
    ['everything together', { ...lane, ...parties, ...others, readyForManualExecOnly: false }, 1],
    ['a chain that nobody knows', { sourceChainSelector: 1n }, 0],
  ];

  test.each(cases)('by %s', async (_what, filters, count) => {
    const page = await client().searchMessages(filters, { limit: 1000 });
    expect(ids(page.data)).toEqual(ids(expected(filters)));
    expect(page.data).toHaveLength(count);
    expect(page).toMatchObject({ hasNextPage: false });
    expect(page.cursor).toBeUndefined();
  });

  test('reads each result as it is: networks, addresses, status, time', async () => {
    const { data } = await client().searchMessages({ sender: svmToEvm.sender });
    const { messageId, origin, sender, receiver, sendTransactionHash, sendTimestamp } = svmToEvm;
    const devnet = { name: 'solana-devnet', chainSelector: selector(solanaDevnet), family: 'SVM' };
    expect(data[0]).toMatchObject({
      ...{ messageId, origin, sender, receiver, status: 'FAILED', sendTransactionHash, sendTimestamp },
      sourceNetworkInfo: { ...devnet, networkType: 'TESTNET' },
      destNetworkInfo: { name: fuji.name, chainSelector: selector(fuji), family: 'EVM' },
    });
  });

  test('knows every status that the service has', async () => {
    const warnings: unknown[] = [];
    const listening = new CCIPAPIClient(server.url, {
      logger: { ...silent, warn: (...words: unknown[]) => warnings.push(words) },
    });
    const { data } = await listening.searchMessages({}, { limit: 1000 });
    expect(data.map(({ status }) => status)).toEqual(newestFirst.map(({ status }) => status));
    expect(warnings).toEqual([]);
  });

  test('has pages of 20 without a limit, of the limit with one, and goes on behind a cursor', async () => {
    const first = await client().searchMessages();
    expect(first.data).toHaveLength(20);
    const second = await client().searchMessages(undefined, { cursor: first.cursor ?? '', limit: 4 });
    expect(ids(second.data)).toEqual(ids(newestFirst.slice(20, 24)));
    expect(second.hasNextPage).toBe(true);
    // The client leaves filters out beside a cursor by itself.
    const third = await client().searchMessages({ sender: svmToEvm.sender }, { cursor: second.cursor ?? '' });
    expect(ids(third.data)).toEqual(ids(newestFirst.slice(24)));
    expect(third).toMatchObject({ hasNextPage: false });
  });
});

describe('searchAllMessages', () => {
  test.each([1, 3, 7, 1000])('walks through pages of %i to the end, in order', async (limit) => {
    expect(ids(await collect(client().searchAllMessages({}, { limit })))).toEqual(ids(newestFirst));
  });

  test('keeps its filters on every page', async () => {
    const filters = { sender: tokenToEvm.sender, readyForManualExecOnly: true };
    const found = await collect(client().searchAllMessages(filters, { limit: 1 }));
    expect(ids(found)).toEqual(ids(expected(filters)));
    expect(found).toHaveLength(3);
  });

  test('ends at once where nothing is found', async () => {
    expect(await collect(client().searchAllMessages({ destChainSelector: 5n }))).toEqual([]);
  });
});

describe('getMessageIdsInTx', () => {
  test('finds every message of a transaction', async () => {
    const inOrder = ids([...batch].sort(compareNewestFirst));
    expect(await client().getMessageIdsInTx(hashOf('batch'))).toEqual(inOrder);
    expect(await client().getMessageIdsInTx(svmToEvm.sendTransactionHash)).toEqual([svmToEvm.messageId]);
  });

  test.each([hashOf('nobody'), svmSignature('nobody')])(
    'fails for one without messages: %s',
    async (hash) => {
      expect(await clientErrorOf(client().getMessageIdsInTx(hash))).toMatchObject({
        name: 'CCIPMessageNotFoundInTxError',
        code: 'MESSAGE_NOT_FOUND_IN_TX',
      });
    },
  );
});

describe('getMessageById', () => {
  const known = sampleMessages.filter(({ version }) => version !== null);

  test.each(known.map((message) => [describeMessage(message), message] as const))(
    'decodes %s',
    async (_what, message) => {
      const request = await client().getMessageById(message.messageId);
      expect(request.lane).toMatchObject({
        sourceChainSelector: BigInt(message.sourceNetworkInfo.chainSelector),
        destChainSelector: BigInt(message.destNetworkInfo.chainSelector),
        onRamp: message.onramp,
        version: message.version,
      });
      expect(request.message).toMatchObject({
        messageId: message.messageId,
        sender: message.sender,
        receiver: message.receiver,
        sequenceNumber: BigInt(message.sequenceNumber),
        nonce: message.nonce === null ? null : BigInt(message.nonce),
        data: message.data,
        feeToken: message.fees.fixedFeesDetails.tokenAddress,
        feeTokenAmount: BigInt(message.fees.fixedFeesDetails.totalAmount),
        allowOutOfOrderExecution: message.extraArgs.allowOutOfOrderExecution,
      });
      expect(request.message.tokenAmounts).toEqual(
        message.tokenAmounts.map(({ amount, destGasAmount, ...addresses }) =>
          expect.objectContaining({
            ...addresses,
            amount: BigInt(amount),
            destGasAmount: destGasAmount === null ? null : BigInt(destGasAmount),
            token: addresses.sourceTokenAddress,
          }),
        ),
      );
      expect(request.log).toMatchObject({
        transactionHash: message.sendTransactionHash,
        address: message.onramp,
        index: message.sendLogIndex,
        blockNumber: message.sendBlockNumber,
      });
      expect(request.tx).toMatchObject({
        hash: message.sendTransactionHash,
        from: message.origin,
        timestamp: Math.floor(Date.parse(message.sendTimestamp) / 1000),
      });
      const { receiptTimestamp } = message;
      expect(request.metadata).toMatchObject({
        status: message.status,
        readyForManualExecution: message.readyForManualExecution,
        receiptTransactionHash: message.receiptTransactionHash,
        receiptTimestamp: receiptTimestamp === null ? undefined : Date.parse(receiptTimestamp) / 1000,
        deliveryTime: message.deliveryTime === null ? null : BigInt(message.deliveryTime),
      });
    },
  );

  test('reads the arguments of both families', async () => {
    const toSvm = await client().getMessageById(evmToSvm.messageId);
    expect(toSvm.message).toMatchObject({
      computeUnits: 0n,
      accountIsWritableBitmap: 18446744073709551615n,
      tokenReceiver: 'tokenReceiver' in evmToSvm.extraArgs ? evmToSvm.extraArgs.tokenReceiver : '',
      accounts: 'accounts' in evmToSvm.extraArgs ? evmToSvm.extraArgs.accounts : [],
    });
    const toEvm = await client().getMessageById(svmToEvm.messageId);
    expect(toEvm.message).toMatchObject({ gasLimit: 200000n });
  });

  test('an id that nobody knows is its not-found error, with our code', async () => {
    expect(await clientErrorOf(client().getMessageById(hashOf('nobody')))).toMatchObject({
      name: 'CCIPMessageIdNotFoundError',
      code: 'MESSAGE_ID_NOT_FOUND',
      context: { apiErrorCode: 'MESSAGE_NOT_FOUND', apiErrorMessage: expect.stringContaining('No message') },
    });
  });
});

describe('errors', () => {
  const cases: readonly (readonly [code: string, ask: () => Promise<unknown>])[] = [
    ['INVALID_PARAMETERS', () => client().searchMessages({}, { limit: 0 })],
    ['INVALID_PARAMETERS', () => client().searchMessages({ sender: 'nonsense' })],
    ['INVALID_PARAMETERS', () => client().getMessageIdsInTx('nonsense')],
    ['INVALID_PARAMETERS', () => collect(client().searchAllMessages({}, { limit: 1001 }))],
    ['INVALID_CURSOR', () => client().searchMessages({}, { cursor: 'nonsense' })],
    ['INVALID_MESSAGE_ID', () => client().getMessageById('0x12')],
  ];

  test.each(cases)('%s arrives as the error code of the API', async (code, ask) => {
    expect(await clientErrorOf(ask())).toMatchObject({
      name: 'CCIPHttpError',
      code: 'HTTP_ERROR',
      isTransient: false,
      context: { status: 400, apiErrorCode: code, apiErrorMessage: expect.any(String) },
    });
  });

  test('a database that is away is transient', async () => {
    const away = await startServer();
    onTestFinished(() => away.close().catch(() => undefined));
    await away.store.close();
    expect(await clientErrorOf(client(away.url).searchMessages())).toMatchObject({
      isTransient: true,
      context: { status: 503, apiErrorCode: 'SERVICE_UNAVAILABLE' },
    });
  });
});

describe('the base URL', () => {
  test.each(['/', '//'])('may end with %s', async (ending) => {
    const api = client(`${server.url}${ending}`);
    expect(ids((await api.searchMessages({}, { limit: 1000 })).data)).toEqual(ids(newestFirst));
    expect((await api.getMessageById(tokenToEvm.messageId)).message.messageId).toBe(tokenToEvm.messageId);
    expect(await api.getMessageIdsInTx(hashOf('batch'))).toHaveLength(3);
  });

  test('is given as the documentation says', async () => {
    const api = CCIPAPIClient.fromUrl(server.url, { logger: silent });
    expect(api.baseUrl).toBe(server.url);
    expect((await api.searchMessages({}, { limit: 2 })).data).toHaveLength(2);
  });
});

test('a change is seen by a new client at once', async () => {
  const message = makeMessage({ number: 500, status: 'COMMITTED' });
  const busy = await startServerForTest([message]);
  const status = async () => (await client(busy.url).getMessageById(message.messageId)).metadata.status;
  expect(await status()).toBe('COMMITTED');
  await busy.store.apply([makeSnapshot(makeMessage({ number: 500, status: 'SUCCESS' }))]);
  expect(await status()).toBe('SUCCESS');
});

function describeMessage(message: Message): string {
  const lane = `${message.sourceNetworkInfo.chainFamily} to ${message.destNetworkInfo.chainFamily}`;
  return `${lane}, ${message.version}, ${message.status}, ${message.tokenAmounts.length} tokens`;
}

/** A mirror first, an index behind it: what the chain says wins field by field, and the audit counts what only the mirror claims. */
import { expect, test } from 'vitest';
import type { Message } from '../../../src/domain/message.ts';
import { storedSelector } from '../../../src/store/write/message-row.ts';
import { startServerForTest } from '../../api/running-server.ts';
import { lanescan } from '../../cli/program.ts';
import { evmAddress, makeMessage, makeRange, makeSent, makeSnapshot, sepolia } from '../../fixtures.ts';
import { connectForTest } from '../../postgres.ts';

/** What a hosted server says, with members that no chain has. */
const mirrored = (overrides: Partial<Message> = {}) =>
  ({
    ...makeMessage({ ...overrides }),
    offramp: makeMessage({ onramp: evmAddress('told') }).onramp,
    intent: { id: 'i1' },
  }) as Message;

test('the chain wins field by field, and the mirror fills what the chain leaves unknown, in whatever order they come', async () => {
  const server = await startServerForTest();
  const told = mirrored({ finality: 7, data: '0x99' });
  const { routerAddress: _, ...chain } = makeMessage();
  const sent = makeSent({ ...chain, routerAddress: null } as Message);
  const offramp = makeMessage({ onramp: evmAddress('offramp') }).onramp;
  const commit = { ...makeRange('Committed', chain as Message, 1, 1), offramp };
  const recordOf = async ({ ask }: typeof server) =>
    (await ask(`/v2/messages/${told.messageId}`)).json<Message>();

  await server.store.apply([makeSnapshot(told)]);
  expect(await recordOf(server)).toEqual(told);
  await server.store.apply([sent]);
  expect(await recordOf(server)).toMatchObject({
    finality: 0,
    data: '0x68656c6c6f',
    // Neither is in the event.
    routerAddress: told.routerAddress,
    intent: { id: 'i1' },
    offramp: told.offramp,
  });
  await server.store.apply([commit]);
  const committed = await recordOf(server);
  expect(committed).toMatchObject({ status: 'COMMITTED', offramp, intent: { id: 'i1' } });
  const other = await startServerForTest();
  for (const fact of [commit, sent, makeSnapshot(told)]) await other.store.apply([fact]);
  expect(await recordOf(other)).toEqual(committed);
});

test('the audit counts what only the mirror claims', async () => {
  const messages = [1, 2, 3].map((number) => makeMessage({ number }));
  const { store } = await startServerForTest(messages);
  const client = await connectForTest(store.url);
  const audit = async () => {
    const { stdout, stderr } = await lanescan(['audit'], { env: { DATABASE_URL: store.url } });
    return stdout + stderr;
  };
  // Nothing is indexed: nothing could confirm them.
  expect(await audit()).not.toContain('known only from');
  await client.query('insert into index_network (selector) values ($1)', [
    storedSelector(sepolia.chainSelector),
  ]);
  expect(await audit()).toContain('3 messages are known only from an import or a mirror');
  await store.apply([makeSent(messages[0] as Message), makeSent(messages[1] as Message)]);
  expect(await audit()).toContain('1 message is known only from an import or a mirror');
  await store.apply([makeSent(messages[2] as Message)]);
  expect(await audit()).not.toContain('known only from');
});

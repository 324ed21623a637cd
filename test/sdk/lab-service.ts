/** The lab with a service that indexes it, for tests that hold the official client to both. */
import { afterAll, beforeAll } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import { type RunningServer, startServer } from '../api/running-server.ts';
import { indexOnce } from '../chain/indexing.ts';
import { type Lab, type Lane, type SentMessage, startLab } from '../lab/lab.ts';
import { CCIPError, type SdkError } from '../lab/sdk.ts';

/** Started before the tests of the file or group that calls it, and closed after them. */
export function createLabService() {
  let lab: Lab;
  let server: RunningServer;
  beforeAll(async () => {
    [lab, server] = await Promise.all([startLab(), startServer()]);
  });
  afterAll(async () => {
    await server?.close();
    await lab?.stop();
  });
  return {
    get lab() {
      return lab;
    },
    get server() {
      return server;
    },
    /** Twice: a destination may have found nothing to ask about a message before its source told of it. */
    async index() {
      await indexOnce(server.store, lab);
      await indexOnce(server.store, lab);
    },
    recordOf: async ({ messageId }: SentMessage) =>
      (await server.ask(`/v2/messages/${messageId}`)).json<Message>(),
  };
}

/** Commits and blesses messages, as far as the version has it: then they can be executed. */
export async function prepare(lane: Lane, messages: readonly SentMessage[]): Promise<void> {
  if (lane.version === '2.0') return;
  await lane.commit(messages);
  if (lane.version === '1.2' || lane.version === '1.5') await lane.bless(messages);
}

/** The error with which the official client fails. */
export async function clientErrorOf(promise: Promise<unknown>): Promise<SdkError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason) => reason,
  );
  if (!CCIPError.isCCIPError(error)) throw new Error(`Not an error of the client: ${error}`);
  return error;
}

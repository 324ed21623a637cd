/** Servers over one database, and a reader of event streams as a browser is one. */
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import type { LiveLimits } from '../../../src/api/live/live.ts';
import type { ChangeEvent } from '../../../src/api/routes/history-schema.ts';
import type { Message } from '../../../src/domain/message.ts';
import { openStore } from '../../../src/store/store.ts';
import { createTestDatabase } from '../../database.ts';
import { type RunningServer, serveStore } from '../running-server.ts';

/** Servers with a store each, on one database of their own; closed with the test. */
export async function startServers<const N extends readonly Partial<LiveLimits>[]>(
  ...limits: N
): Promise<{ [K in keyof N]: RunningServer }> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const servers = await Promise.all(limits.map((live) => startServerOn(database.url, live)));
  return servers as { [K in keyof N]: RunningServer };
}

/** Closed with the test. */
export async function startServerOn(url: string, live: Partial<LiveLimits> = {}): Promise<RunningServer> {
  const server = await serveStore({ ...(await openStore({ place: { url } })), url }, { live });
  onTestFinished(() => server.close());
  return server;
}

export interface StreamEvent {
  readonly id: string;
  readonly event: string;
  readonly data: ChangeData;
}

export interface ChangeData extends ChangeEvent {
  readonly message: Message;
  /** Of `dropped` and `closing`. */
  readonly reason: string;
}

/** Reads a stream as the standard says, and connects again when told to. */
export class EventReader {
  /** Changes of all connections, in order. */
  readonly changes: StreamEvent[] = [];
  /** `ready`, `dropped` and `closing`. */
  readonly controls: StreamEvent[] = [];
  comments = 0;
  lastEventId = '';
  response: IncomingMessage | undefined;
  #request: ClientRequest | undefined;
  #text = '';
  #ended = Promise.resolve();

  /** Resolves when the answer's head is there. */
  async connect(url: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
    this.#text = '';
    const given = this.lastEventId === '' ? headers : { 'Last-Event-ID': this.lastEventId, ...headers };
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      this.#request = httpRequest(url, { agent: false, headers: given }, resolve);
      this.#request.on('error', reject);
      this.#request.end();
    });
    this.response = response;
    response.setEncoding('utf8');
    response.on('data', (text: string) => this.#take(text));
    response.on('error', () => undefined);
    this.#ended = new Promise((resolve) => {
      response.once('close', () => resolve());
    });
    return response;
  }

  get ended(): Promise<void> {
    return this.#ended;
  }

  /** Hangs up, as a connection that breaks does: what is on its way is lost. */
  async disconnect(): Promise<void> {
    this.response?.removeAllListeners('data');
    this.#request?.destroy();
    await this.#ended;
  }

  /** Reads all changes since the first, and after each break those after the last that it has seen. */
  async follow(serverUrl: () => string | undefined, isOver: () => boolean, query = ''): Promise<void> {
    while (!isOver()) {
      try {
        await this.connect(`${serverUrl()}/v2/messages/stream?view=summary&after=0${query}`);
        if (this.response?.statusCode === 200) await this.ended;
        else await this.disconnect();
      } catch {
        // No server listens.
      }
      await delay(20);
    }
  }

  get positions(): number[] {
    return this.changes.map(({ id }) => Number(id));
  }

  /** Whether the reader has heard of everything up to this position, filtered or not. */
  hasReached(position: number): boolean {
    return Number(this.lastEventId) >= position;
  }

  #take(text: string): void {
    this.#text += text;
    for (;;) {
      const end = this.#text.indexOf('\n\n');
      if (end < 0) return;
      const block = this.#text.slice(0, end);
      this.#text = this.#text.slice(end + 2);
      let event = 'message';
      let data = '';
      for (const line of block.split('\n')) {
        if (line.startsWith(':')) this.comments++;
        if (line.startsWith('id: ')) this.lastEventId = line.slice(4);
        if (line.startsWith('event: ')) event = line.slice(7);
        if (line.startsWith('data: ')) data += line.slice(6);
      }
      if (data === '') continue;
      const isControl = event === 'ready' || event === 'dropped' || event === 'closing';
      (isControl ? this.controls : this.changes).push({
        id: this.lastEventId,
        event,
        data: JSON.parse(data),
      });
    }
  }
}

/** A reader that is connected and has read where its stream begins. */
export async function readStream(url: string, headers?: Record<string, string>): Promise<EventReader> {
  const reader = new EventReader();
  onTestFinished(() => reader.disconnect());
  await reader.connect(url, headers);
  await until(() => reader.controls.length > 0);
  return reader;
}

/** The time is generous, for machines that are slow or busy: it ends what hangs. */
export async function until(isTrue: () => boolean | Promise<boolean>, timeoutMs = 300_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error(`Not within ${timeoutMs} ms: ${isTrue}`);
    await delay(10);
  }
}

/** Until so many streams and waits are open, as the server counts them. */
export async function untilFollowing({ url }: { readonly url: string }, count: number): Promise<void> {
  await until(async () => {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    return Number(/^lanescan_feed_followers(?:\{.*\})? (\d+)$/m.exec(metrics)?.[1]) === count;
  });
}

export const numbersUpTo = (last: number, first = 1): number[] =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

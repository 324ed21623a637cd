/** Clients that ask through a proxy without a pause, and write down every request that failed. */
import { Agent, get, type IncomingMessage } from 'node:http';
import { onTestFinished } from 'vitest';

/** How a client knows that an answer is whole and right; throws where it is not. */
export type Judge = (body: string, answer: IncomingMessage) => void;

export interface Client {
  readonly path: string;
  readonly keepAlive: boolean;
  readonly judge: Judge;
}

/** Each client sends its next request when it has the answer to the one before. */
export function startLoad(url: string, clients: readonly Client[]) {
  const failures: string[] = [];
  let succeeded = 0;
  let isOver = false;
  const run = async ({ path, keepAlive, judge }: Client) => {
    const agent = keepAlive ? new Agent({ keepAlive: true, maxSockets: 1 }) : false;
    while (!isOver) {
      try {
        const { answer, body } = await ask(`${url}${path}`, agent);
        if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}: ${body.slice(0, 300)}`);
        judge(body, answer);
        succeeded++;
      } catch (error) {
        failures.push(`${new Date().toISOString()} ${path}: ${(error as Error).message}`);
      }
    }
    if (agent) agent.destroy();
  };
  const running = Promise.all(clients.map(run));
  const stop = async () => {
    isOver = true;
    await running;
  };
  onTestFinished(stop);
  return {
    /** How many requests have got a whole and right answer. */
    get succeeded() {
      return succeeded;
    },
    /** What went wrong, in words. */
    failures,
    stop,
  };
}

function ask(url: string, agent: Agent | false): Promise<{ answer: IncomingMessage; body: string }> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent }, (answer) => {
      let body = '';
      answer.setEncoding('utf8');
      answer.on('data', (text: string) => {
        body += text;
      });
      answer.on('error', reject);
      answer.on('end', () => resolve({ answer, body }));
    });
    request.on('error', reject);
  });
}

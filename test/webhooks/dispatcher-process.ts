/** A process that delivers webhooks until it is killed: `dispatcher-process.ts DATABASE_URL RECEIVER_URL NAME`. */
import { pino } from 'pino';
import { readSetting } from '../../src/base/settings.ts';
import { openStore } from '../../src/store/store.ts';
import { startDispatcher } from '../../src/webhooks/dispatcher.ts';
import { webhooksSetting } from '../../src/webhooks/subscription.ts';

const [, , database = '', url = '', name = ''] = process.argv;
// biome-ignore lint/suspicious/noTemplateCurlyInString: that is how the file has it
const entry = { name: 'ops', url, secret: '${SECRET}', allowPrivate: true };
const store = await openStore({ place: { url: database } });
startDispatcher({
  store,
  subscriptions: readSetting(webhooksSetting, [entry], ['webhooks'], process.env),
  log: pino({}, { write: (line: string) => void process.stdout.write(line) }),
  userAgent: name,
  now: Date.now,
  random: Math.random,
  timings: { leaseMs: 1_500, tickMs: 200, totalMs: 1_000, connectMs: 1_000, lostAfterMs: 500 },
});

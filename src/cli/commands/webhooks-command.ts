import { nearestName } from '../../base/nearest-name.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { WebhookBacklog } from '../../store/ledger/webhook-deliveries.ts';
import type { Store } from '../../store/store.ts';
import { age, counted, printable } from '../../text/format.ts';
import { dispatcherTimings } from '../../webhooks/dispatcher.ts';
import { signedHeaders, testEvent } from '../../webhooks/event.ts';
import { decideRetry } from '../../webhooks/retry.ts';
import { createSender } from '../../webhooks/sender.ts';
import { type Subscription, shownTarget } from '../../webhooks/subscription.ts';
import type { Command } from '../command.ts';
import { type ConfigFlags, UsageError } from '../config/config.ts';
import { type CliContext, configOf, withStore, withStoreOptions } from '../context.ts';
import { writeObjects, writeOut } from '../output/output.ts';
import { type Column, tableText } from '../output/table.ts';
import { lanescanVersion } from '../version.ts';

const EXIT_STATUSES = `
Exit status: 0 done, 1 failure or unknown webhook, 2 wrong usage.`;

export function addWebhooks(program: Command, context: CliContext): void {
  const webhooks = program
    .command('webhooks')
    .description('list, test and replay the webhooks of lanescan.yaml (`serve` delivers them)')
    .notes(`
Examples:
  $ lanescan webhooks list
  $ lanescan webhooks test ops-alerts
  $ lanescan webhooks replay ops-alerts --parked`);
  addList(webhooks, context);
  addTest(webhooks, context);
  addReplay(webhooks, context);
}

function addList(webhooks: Command, context: CliContext): void {
  withStoreOptions(webhooks.command('list'))
    .option('--json', 'one JSON object a line')
    .description('position, pending and parked deliveries, and the latest error of each webhook')
    .notes(`
LAG counts changes that were not processed yet, PENDING deliveries that wait for an attempt, PARKED those that were
given up after a day. A server renews its lease on a webhook every few seconds; "not served" means that none holds it.
${EXIT_STATUSES}

Examples:
  $ lanescan webhooks list
  $ lanescan webhooks list --json | jq 'select(.parked > 0)'`)
    .action(async (flags: ConfigFlags & { json?: boolean }) => {
      const config = configOf(flags, context);
      const configured = config.read('webhooks', context.environment);
      await withStore(config, context, { connections: 1 }, async (store) => {
        const lines = webhookStates(configured, await store.webhooks.backlog());
        if (flags.json) await writeObjects(lines, context);
        else if (lines.length > 0) await writeOut(context.out, table(lines, context.now()));
        else context.err.write('No webhooks: lanescan.yaml has none under `webhooks`.\n');
      });
    });
}

interface WebhookState extends Omit<WebhookBacklog, 'position'> {
  /** Null while it has never been served. */
  readonly position: string | null;
  /** Null where the configuration has no such webhook any more. */
  readonly target: string | null;
}

const unserved = {
  position: null,
  lag: 0,
  pending: 0,
  parked: 0,
  delivered: 0,
  lastDeliveredAt: null,
  lastError: null,
  lastFailedAt: null,
  isServed: false,
};

/** The configured ones in the order of the file, then those that only the store has. */
function webhookStates(configured: readonly Subscription[], backlog: readonly WebhookBacklog[]) {
  const known = configured.map((subscription) => ({
    ...(backlog.find(({ name }) => name === subscription.name) ?? unserved),
    name: subscription.name,
    target: shownTarget(subscription),
  }));
  const left = backlog.filter(({ name }) => !configured.some((subscription) => subscription.name === name));
  return [...known, ...left.map((line) => ({ ...line, target: null }))];
}

function table(lines: readonly WebhookState[], now: number): string {
  const count = (title: string, of: (line: WebhookState) => number) =>
    ({ title, cell: (line: WebhookState) => of(line).toLocaleString('en'), align: 'right' }) as const;
  const columns: readonly Column<WebhookState>[] = [
    { title: 'NAME', cell: ({ name }) => name },
    {
      title: 'TARGET',
      cell: ({ target }) => (target === null ? '(not in the configuration)' : printable(target)),
    },
    { title: 'POSITION', cell: ({ position }) => position ?? '–', align: 'right' },
    count('LAG', ({ lag }) => lag),
    count('PENDING', ({ pending }) => pending),
    count('PARKED', ({ parked }) => parked),
    count('DELIVERED', ({ delivered }) => delivered),
    { title: '', cell: ({ isServed }) => (isServed ? 'served' : 'not served') },
  ];
  const errors = lines.flatMap(({ name, lastError, lastFailedAt }) =>
    lastError === null || lastFailedAt === null
      ? []
      : [`${name}: ${age(now - lastFailedAt.getTime())} ago: ${printable(lastError)}\n`],
  );
  const latest = errors.length > 0 ? `\nLatest errors\n${errors.join('')}` : '';
  return `${tableText(lines, { columns })}${latest}`;
}

function addTest(webhooks: Command, context: CliContext): void {
  webhooks
    .command('test')
    .argument('<name>', 'name of the webhook')
    .option('--config <file>', 'configuration file (default: ./lanescan.yaml where there is one)')
    .description('send a signed event of type lanescan.test now, and show the response')
    .notes(`
Exit status: 0 the receiver accepted it (2xx), 1 it did not, 2 wrong usage.

Examples:
  $ lanescan webhooks test ops-alerts`)
    .action(async (name: string, flags: ConfigFlags) => {
      const subscription = namedWebhook(name, flags, context);
      const startedAt = context.now();
      const at = new Date(startedAt);
      const event = testEvent(subscription, at);
      const sender = createSender(subscription, dispatcherTimings, `Lanescan/${lanescanVersion}`, 1);
      const result = await sender
        .send(signedHeaders(event, subscription.keys, at), event.body, context.signal)
        .catch((error: Error) => error)
        .finally(() => sender.close());
      const decision = decideRetry(result, { number: 1, firstAt: at, endedAt: at }, dispatcherTimings, 1);
      if (decision.kind !== 'delivered') {
        throw new OperatorError(
          `${name} did not accept the test event ${event.id}: ${printable(decision.failure.error)}.`,
          `It was sent to ${shownTarget(subscription)}; nothing is queued.`,
        );
      }
      const status = result instanceof Error ? '' : result.status;
      await writeOut(
        context.out,
        `${name} accepted the test event ${event.id}: HTTP ${status} in ${context.now() - startedAt} ms.\n`,
      );
    });
}

function addReplay(webhooks: Command, context: CliContext): void {
  withStoreOptions(webhooks.command('replay'))
    .argument('<name>', 'name of the webhook')
    .option('--parked', 'deliver parked events again')
    .option('--after <position>', 'deliver every matching change after this position again (0: all)')
    .description('deliver again, through the running servers or the next one that starts')
    .notes(`
Events keep their webhook-id, so that a receiver recognises those it already has.
${EXIT_STATUSES}

Examples:
  $ lanescan webhooks replay ops-alerts --parked
  $ lanescan webhooks replay ops-alerts --after 120000`)
    .action(async (name: string, flags: ConfigFlags & { after?: string; parked?: boolean }) => {
      if ((flags.after === undefined) === (flags.parked === undefined)) {
        throw new UsageError(
          'replay takes either --parked or --after.',
          'Try: lanescan webhooks replay --help',
        );
      }
      if (flags.after !== undefined && !/^\d{1,18}$/.test(flags.after)) {
        throw new UsageError(
          `--after is ${JSON.stringify(flags.after)}.`,
          'It takes a position of the history: a whole number, as `data.position` of an event.',
        );
      }
      const subscription = namedWebhook(name, flags, context);
      const config = configOf(flags, context);
      await withStore(config, context, { connections: 1, access: 'write' }, async (store) => {
        const result =
          flags.after === undefined
            ? `${counted(await store.webhooks.replayParked(name, new Date(context.now())), 'parked event')} of ${name} will be delivered again.`
            : await rewind(subscription, BigInt(flags.after), store);
        await writeOut(context.out, `${result}\n`);
      });
    });
}

async function rewind({ name }: Subscription, after: bigint, store: Store): Promise<string> {
  const latest = BigInt(await store.latestPosition());
  if (after > latest) {
    throw new UsageError(
      `--after is ${after}, but the history ends at ${latest}.`,
      'Give an earlier position.',
    );
  }
  const backlog = (await store.webhooks.backlog()).find((line) => line.name === name);
  if (backlog && after > BigInt(backlog.position)) {
    throw new UsageError(
      `--after is ${after}, but ${name} is only at ${backlog.position}.`,
      'Continuing there would skip changes; give an earlier position.',
    );
  }
  await store.webhooks.rewind(name, String(after));
  return `${name} goes back to position ${after}: ${counted(Number(latest - after), 'change')} will be processed again.`;
}

function namedWebhook(name: string, flags: ConfigFlags, context: CliContext): Subscription {
  const config = configOf(flags, context);
  const configured = config.read('webhooks', context.environment);
  const found = configured.find((subscription) => subscription.name === name);
  if (found) return found;
  const names = configured.map((subscription) => subscription.name);
  const nearest = nearestName(name, names);
  throw new OperatorError(
    `No webhook is named ${JSON.stringify(printable(name))}.`,
    nearest
      ? `Did you mean ${nearest}?`
      : names.length > 0
        ? `There are ${names.join(', ')}.`
        : `${config.file ?? 'lanescan.yaml'} has none under \`webhooks\`.`,
  );
}

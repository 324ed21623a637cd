/** `lanescan diagnose`: would a manual execution of a message work now, and with which gas limit? */

import type { Diagnosis } from '../../api/execution/execution-schema.ts';
import type { Message } from '../../domain/message.ts';
import { printable } from '../../text/format.ts';
import { networkName } from '../../text/message-words.ts';
import type { Command } from '../command.ts';
import { type CliContext, configOf } from '../context.ts';
import { jsonLine, writeOut } from '../output/output.ts';
import { type Colour, createPaint, wrapped } from '../output/terminal-text.ts';
import { type RecordFlags, withRecordOptions, withRecords } from './records.ts';
import { findRecord, parseId, serverUrl } from './show-command.ts';

const NO_SUCCESS_STATUS = 3;
const DEFAULT_WIDTH = 100;

const titles: Readonly<Record<Diagnosis['outcome'], readonly [title: string, colour: Colour]>> = {
  succeeds: ['Would succeed', 'green'],
  executed: ['Executed', 'green'],
  fails: ['Would fail', 'red'],
  'not-yet': ['Not yet', 'yellow'],
  impossible: ['Cannot be executed from here', 'yellow'],
  untried: ['Not tried', 'yellow'],
};

export function addDiagnose(program: Command, context: CliContext): void {
  const command = withRecordOptions(program.command('diagnose'))
    .argument('<id>', 'message id: all digits, its first digits, or shortened as by `lanescan search`')
    .option('--json', 'the diagnosis as JSON')
    .description('try the manual execution of a message on its destination, without sending anything')
    .notes(`
It is simulated on an endpoint of the destination, which lanescan.yaml has under \`networks\`; with --url, on one of that
server.

Exit status: 0 it would succeed or has been executed, 1 unknown message or no answer, 2 not a message id, 3 it would fail,
or was not tried.

Examples:
  $ lanescan diagnose 0x58521b02b1b25a1cbbc6ba2f5ea4dd9a5ef3e3b4d6ba0fd5cc8cf0c3ce860ca4
  $ lanescan diagnose 0x58521b02 --json | jq -r .gasLimit
  $ lanescan diagnose 0x58521b02b1b25a1cbbc6ba2f5ea4dd9a5ef3e3b4d6ba0fd5cc8cf0c3ce860ca4 --url https://lanescan.example`)
    .action(async (text: string, flags: RecordFlags & { json?: boolean }) => {
      const id = parseId(text, command);
      const config = configOf(flags, context);
      await withRecords(flags, config, context, async (records) => {
        const message = JSON.parse(await findRecord(id, records)) as Message;
        const diagnosis = await records.diagnosis(message);
        const { out } = context;
        const server = flags.url ?? serverUrl(config);
        await writeOut(
          out,
          flags.json
            ? jsonLine(out, JSON.stringify(diagnosis))
            : describe(message, diagnosis, server, context),
        );
        const isGood = diagnosis.outcome === 'succeeds' || diagnosis.outcome === 'executed';
        if (!isGood) context.exitCode = NO_SUCCESS_STATUS;
      });
    });
}

function describe(
  { messageId, destNetworkInfo }: Message,
  { outcome, text, reason, gasLimit, gas, block }: Diagnosis,
  server: string,
  { out, environment }: CliContext,
): string {
  const paint = createPaint(out, environment);
  const width = out.isTTY ? (out.columns ?? DEFAULT_WIDTH) : DEFAULT_WIDTH;
  const [title, colour] = titles[outcome] ?? [outcome, 'yellow'];
  const where = block === null ? '' : `, block ${block.number} of ${printable(block.timestamp)}`;
  const query = gasLimit === null ? '' : `?gasLimit=${gasLimit}`;
  const lines = [
    printable(text),
    ...(reason ? [printable(reason.advice)] : []),
    ...(gas === null ? [] : [`Gas of the transaction: ${BigInt(gas).toLocaleString('en')}.`]),
    ...(outcome === 'untried'
      ? ['Configure the network under `networks` in lanescan.yaml, or ask a server that has it with --url.']
      : []),
    ...(outcome === 'succeeds' ? ['The transaction, for any wallet to send:'] : []),
  ].flatMap((line) => wrapped(line, width - 2));
  return [
    `${paint(title, colour, 'bold')}${outcome === 'impossible' ? '' : ` on ${networkName(destNetworkInfo)}`}${paint(where, 'dim')}`,
    ...lines.map((line) => `  ${line}`),
    // A command is not wrapped, so that it can be copied.
    ...(outcome === 'succeeds'
      ? [`  $ curl '${server}/v2/messages/${messageId}/manual-execution${query}'`]
      : []),
    '',
  ].join('\n');
}

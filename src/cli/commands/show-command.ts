import { OperatorError } from '../../base/operator-error.ts';
import type { Message } from '../../domain/message.ts';
import { printable } from '../../text/format.ts';
import type { Command } from '../command.ts';
import { loadAbis } from '../config/abi-folder.ts';
import type { Config } from '../config/config.ts';
import { type CliContext, configOf } from '../context.ts';
import { describeMessage } from '../output/message-description.ts';
import { jsonLine, writeOut } from '../output/output.ts';
import { clipped, createPaint } from '../output/terminal-text.ts';
import { type RecordFlags, withRecordOptions, withRecords } from './records.ts';
import type { Records } from './records-interface.ts';

const MIN_PREFIX = 6;
/** Ids are hashes: this many with the same six digits mean that the prefix is too short. */
const MAX_CANDIDATES = 50;

export function addShow(program: Command, context: CliContext): void {
  const command = withRecordOptions(program.command('show'))
    .argument('<id>', 'message id: all digits, its first digits, or shortened as by `lanescan search`')
    .option('--json', 'the record as JSON')
    .description('one message, in full')
    .notes(`
Exit status: 0 found, 1 unknown message, 2 not a message id.

Examples:
  $ lanescan show 0x58521b02b1b25a1cbbc6ba2f5ea4dd9a5ef3e3b4d6ba0fd5cc8cf0c3ce860ca4
  $ lanescan show 0x58521b02…860ca4
  $ lanescan show 0x58521b02 --json | jq .fees
  $ lanescan show 0x58521b02b1b25a1cbbc6ba2f5ea4dd9a5ef3e3b4d6ba0fd5cc8cf0c3ce860ca4 --url https://lanescan.example`)
    .action(async (text: string, flags: RecordFlags & { json?: boolean }) => {
      const id = parseId(text, command);
      const config = configOf(flags, context);
      loadAbis(config);
      await withRecords(flags, config, context, async (records) => {
        const { out, environment, now } = context;
        const record = await findRecord(id, records);
        if (flags.json) return writeOut(out, jsonLine(out, record));
        const message = JSON.parse(record) as Message;
        const description = describeMessage(message, {
          paint: createPaint(out, environment),
          width: out.isTTY ? (out.columns ?? 80) : null,
          now: now(),
          attempts: await records.attempts(message),
          names: await records.names([message]),
          serverUrl: flags.url ?? serverUrl(config),
        });
        return writeOut(out, description);
      });
    });
}

export function parseId(text: string, command: Command) {
  const match = /^(?:0x)?([0-9a-f]{6,64})(?:(?:…|\.\.\.?)([0-9a-f]{1,58}))?$/i.exec(text.trim());
  if (!match) {
    const isShort = /^(0x)?[0-9a-f]{1,5}$/i.test(text.trim());
    return command.error(
      `lanescan: A message id is 0x and 64 hexadecimal digits${isShort ? `; its first ${MIN_PREFIX} are enough` : ''}; ` +
        `${JSON.stringify(clipped(printable(text), 70))} is ${isShort ? 'too short' : 'not a message id'}.`,
    );
  }
  const [, head = '', tail = ''] = match.map((part) => part?.toLowerCase());
  return { head, tail, isWhole: head.length === 64 };
}

export async function findRecord({ head, tail, isWhole }: ReturnType<typeof parseId>, source: Records) {
  if (isWhole) {
    const found = await source.findMessage(head);
    if (found !== undefined) return found;
    throw new OperatorError(
      `Message 0x${head} not found.`,
      `If it is a transaction: lanescan search 0x${head}`,
    );
  }
  const candidates = await source.findMessagesByPrefix(head, MAX_CANDIDATES);
  const records = candidates.filter((record) => idOf(record).endsWith(tail));
  const [record] = records;
  const shown = `0x${head}${tail === '' ? '' : `…${tail}`}`;
  if (record === undefined) {
    throw new OperatorError(`No message ID begins with ${shown}.`, 'List the newest with: lanescan search');
  }
  if (records.length === 1 && candidates.length < MAX_CANDIDATES) return record;
  throw new OperatorError(
    `${shown} matches several messages: ${records.slice(0, 3).map(idOf).join(', ')}${records.length > 3 ? ' and more' : ''}.`,
    'Give more digits.',
  );
}

function idOf(record: string): string {
  return (JSON.parse(record) as Message).messageId;
}

/** Where `lanescan serve` answers with the same settings, seen from this machine. */
export function serverUrl({ host, port }: Pick<Config, 'host' | 'port'>): string {
  const isAny = host === '0.0.0.0' || host === '::';
  const name = isAny ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}`;
}

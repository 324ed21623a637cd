/**
 * Decodes recorded transactions of Solana's devnet and compares ids, leaves and derived addresses with what is known of
 * them. The recording is not part of the repository.
 *
 *   npx tsx scripts/check-solana-recording.ts <recorded.json>
 *
 * Exit status: 0 all is equal, 1 something differs, 2 there is no recording.
 */
import { existsSync, readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { base58, base64 } from '@scure/base';
import {
  eventNameOf,
  instructionNameOf,
  readEvent,
  readExtraArgs,
  readInstruction,
} from '../src/ingest/svm/decode/layouts.ts';
import { readProgramLogs } from '../src/ingest/svm/decode/program-logs.ts';
import { sentMessageId } from '../src/ingest/svm/decode/sent-message.ts';
import { addresses } from '../test/solana/ccip-accounts.ts';
import { receivedLeaf } from '../test/solana/ccip-events.ts';
import { fromHex, toHex } from '../test/solana/runtime/bytes.ts';

const [file = ''] = process.argv.slice(2);
if (!existsSync(file)) {
  console.error('Not checked: no recording was found. Usage: check-solana-recording.ts <recorded.json>');
  process.exit(2);
}
const recorded = JSON.parse(readFileSync(file, 'utf8'));
let compared = 0;
let differences = 0;

const sent = [
  {
    name: 'V1',
    router: 'CcipQ6z7nULJPwQyZnbRwiupj9Virv8oLJwSgxN2b55P',
    id: '0xa3c503610acaab2c79113539652ed1b9dbab501a80aebc70f65cca9d06157511',
    sequenceNumber: 16n,
    nonce: 10n,
    amounts: [2n],
    gasLimit: '200000',
  },
  {
    name: 'V4',
    router: 'Ccip8ZTcM2qHjVt8FYHtuCAqjc637yLKnsJ5q5r2e6eL',
    id: '0xc8cad4f80de5b5c436c102beedfb2bef0797169730c340c1c2147c70ea7e05c0',
    sequenceNumber: 2151n,
    nonce: 0n,
    amounts: [10_000n],
    gasLimit: '1231231',
  },
];

for (const { name, router, id, sequenceNumber, nonce, amounts, gasLimit } of sent) {
  const data = base64.decode(recorded[name].programData);
  compare(`${name}: the event`, eventNameOf(data), 'CCIPMessageSent');
  const event = readEvent('CCIPMessageSent', data);
  if (event.name !== 'CCIPMessageSent') continue;
  const { header, tokenAmounts, extraArgs } = event.message;
  compare(`${name}: the id it states`, header.messageId, id);
  compare(`${name}: the id computed from it`, sentMessageId(event.message, router), id);
  compare(`${name}: its number`, header.sequenceNumber, sequenceNumber);
  compare(`${name}: its nonce`, header.nonce, nonce);
  compare(
    `${name}: its amounts`,
    tokenAmounts.map(({ amount }) => amount),
    amounts,
  );
  compare(`${name}: its gas limit`, (readExtraArgs(extraArgs) as { gasLimit: string }).gasLimit, gasLimit);
}

const { logs, instructionBase58, accounts, executionStateChanged } = recorded.V5;
const offRamp = 'offVkroQ4wYMv6QFPBvJazAx2p8BnLh7sJRdyQ5GYfx';
const router = 'Ccip8ZTcM2qHjVt8FYHtuCAqjc637yLKnsJ5q5r2e6eL';
const sepolia = 16015286601757825753n;
const leaf = '0x91d3c913d08bc07134dad446c3231fa2b3c9621bba719f273551c92390834c1c';
const messageId = '0xe39f2081dfdcb4ec87654702cf40318d6890b1536c7af578dba2060623133ba1';

// The recording names the two events in the lines where they stood.
const lines = readProgramLogs(
  logs.map((line: string) =>
    line
      .replace('<Transmitted>', recorded.V5.transmitted)
      .replace('<ExecutionStateChanged>', executionStateChanged),
  ),
);
compare('V5: problem of the logs', lines.problem, undefined);
compare(
  'V5: the event, by the program that emitted it',
  lines.emitted.some(
    ({ frame, base64: text }) => frame.program === offRamp && text === executionStateChanged,
  ),
  true,
);
compare('V5: the event', readEvent('ExecutionStateChanged', base64.decode(executionStateChanged)), {
  name: 'ExecutionStateChanged',
  sourceChainSelector: sepolia,
  sequenceNumber: 731n,
  messageId,
  messageHash: leaf,
  state: 1,
});

const data = base58.decode(instructionBase58);
compare('V5: the instruction', instructionNameOf(data), 'execute');
const instruction = readInstruction('execute', data);
const report = instruction.name === 'execute' ? instruction.report : undefined;
if (!report) compare('V5: the report', report, 'a report in the instruction');
else {
  const header = { ...report.message.header, messageId: fromHex(messageId) };
  const computed = receivedLeaf(
    { ...report.message, header },
    {
      onRamp: fromHex('32f88479dc6e9eebe603ee032161387b96337fff'),
      receiver: accounts[12],
      accounts: accounts.slice(14, 20),
    },
  );
  compare('V5: the id in the report', report.message.header.messageId, messageId);
  compare('V5: compute units', report.message.computeUnits, 80_000);
  compare('V5: bitmap', report.message.isWritableBitmap, 14n);
  compare('V5: the leaf computed from the report, which is its own root', toHex(computed), leaf);
}

const derived = [
  addresses.config(offRamp),
  addresses.referenceAddresses(offRamp),
  addresses.sourceChainState(offRamp, sepolia),
  addresses.commitReport(offRamp, sepolia, fromHex(leaf)),
  offRamp,
  addresses.allowedOffRamp(router, sepolia, offRamp),
];
for (const [index, address] of derived.entries()) {
  compare(`V5: account ${index} of the instruction`, address, accounts[index]);
}
compare(
  'V5: the signer for the receiver',
  addresses.externalExecutionConfig(offRamp, accounts[12]),
  accounts[13],
);

console.log(`${compared - differences} of ${compared} values are as recorded.`);
process.exitCode = differences > 0 ? 1 : 0;

function compare(what: string, found: unknown, expected: unknown): void {
  compared++;
  if (isDeepStrictEqual(found, expected)) return;
  differences++;
  console.error(`${what}: ${String(found)} instead of ${String(expected)}`);
}

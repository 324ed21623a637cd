/**
 * A stand-in for CCIP's programs in Solana's virtual machine: it does what a script says. The script is in the last
 * account of the instruction, so that the instruction itself is the genuine one.
 *
 * The account holds entries: program (32 bytes), length of the data (8), length of the script (8), the instruction data,
 * the script, each padded to a multiple of eight. A program looks for the entry of its own id and its own instruction
 * data. A script is records: operation (8), length (8), payload, padded likewise.
 */
import { concat, pubkey, u8, u64 } from '../../solana/runtime/bytes.ts';
import { createAssembler, immediate, type Register } from './sbf-assembler.ts';

const operations = { logData: 1, log: 2, call: 3, setReturnData: 4, fail: 5 } as const;

export interface CalledAccount {
  readonly address: string;
  readonly isWritable: boolean;
}

const padded = (bytes: Uint8Array) => concat(bytes, new Uint8Array((8 - (bytes.length % 8)) % 8));
const record = (operation: keyof typeof operations, payload: Uint8Array) =>
  concat(u64(BigInt(operations[operation])), u64(BigInt(payload.length)), padded(payload));

/** The records of a script. */
export const scripts = {
  logData: (data: Uint8Array) => record('logData', data),
  log: (text: string) => record('log', new Uint8Array(Buffer.from(text))),
  setReturnData: (data: Uint8Array) => record('setReturnData', data),
  fail: (code: number) => record('fail', u64(BigInt(code))),
  call: (program: string, accounts: readonly CalledAccount[], data: Uint8Array) =>
    record(
      'call',
      concat(
        pubkey(program),
        u64(BigInt(accounts.length)),
        u64(BigInt(data.length)),
        ...accounts.map(({ address, isWritable }) =>
          concat(pubkey(address), u8(isWritable ? 1 : 0), new Uint8Array(7)),
        ),
        data,
      ),
    ),
};

/** What one program does when it is called with some data. */
export function scriptEntry(program: string, data: Uint8Array, script: Uint8Array): Uint8Array {
  return concat(pubkey(program), u64(BigInt(data.length)), u64(BigInt(script.length)), padded(data), script);
}

const HEAP = 0x3_0000_0000n;
/** Of the runtime's structure for an account in calls between programs. */
const INFO_BYTES = 56;
const META_BYTES = 16;
/** Of an account in a record `call`. */
const CALLED_BYTES = 40;
const ENTRY_HEADER_BYTES = 48;
const RECORD_HEADER_BYTES = 16;
/** Room that the runtime leaves behind the data of each account. */
const SPARE_BYTES = 10_240;

/** Places in the stack frame. */
const frame = {
  count: -8,
  scriptAt: -16,
  scriptBytes: -24,
  metasAt: -32,
  slice: -48,
  instruction: -96,
} as const;

const FRAME: Register = 10;

export function assembleStandIn(): Uint8Array {
  const a = createAssembler();
  const [input, rest, info] = [6, 7, 9] as const;

  // Accounts: the runtime's structures for them are built on the heap, one after the other.
  a.move(input, 1);
  a.loadWord(rest, input, 0);
  a.add(input, immediate(8));
  a.storeWord(FRAME, frame.count, rest);
  a.loadConstant(info, HEAP);
  a.label('account');
  a.jumpIfEqual(rest, 0, 'accounts end');
  a.loadByte(2, input, 0);
  a.jumpIfEqual(2, 0xff, 'new account');
  // One that was there before: its structure is copied.
  a.multiply(2, INFO_BYTES);
  a.loadConstant(3, HEAP);
  a.add(3, 2);
  for (let offset = 0; offset < INFO_BYTES; offset += 8) {
    a.loadWord(4, 3, offset);
    a.storeWord(info, offset, 4);
  }
  a.add(input, immediate(8));
  a.jump('next account');
  a.label('new account');
  const pointer = (from: number, to: number) => {
    a.move(3, input);
    a.add(3, immediate(from));
    a.storeWord(info, to, 3);
  };
  pointer(8, 0); // key
  pointer(72, 8); // lamports
  a.loadWord(4, input, 80);
  a.storeWord(info, 16, 4);
  a.storeWord(FRAME, frame.scriptBytes, 4);
  pointer(88, 24); // data
  a.storeWord(FRAME, frame.scriptAt, 3);
  pointer(40, 32); // owner
  for (const flag of [0, 1, 2]) {
    a.loadByte(2, input, 1 + flag);
    a.storeByte(info, 48 + flag, 2);
  }
  a.add(input, immediate(88 + SPARE_BYTES));
  a.add(input, 4);
  a.align(input);
  a.loadWord(3, input, 0);
  a.storeWord(info, 40, 3); // rent epoch
  a.add(input, immediate(8));
  a.label('next account');
  a.add(info, immediate(INFO_BYTES));
  a.add(rest, immediate(-1));
  a.jump('account');

  a.label('accounts end');
  a.storeWord(FRAME, frame.metasAt, info);
  const [dataLength, program] = [4, 5] as const;
  a.loadWord(dataLength, input, 0);
  a.add(input, immediate(8));
  a.move(program, input);
  a.add(program, dataLength);
  const [entry, end] = [7, 8] as const;
  a.loadWord(entry, FRAME, frame.scriptAt);
  a.loadWord(end, FRAME, frame.scriptBytes);
  a.add(end, entry);

  a.label('find');
  a.jumpIfAtLeast(entry, end, 'success');
  for (const offset of [0, 8, 16, 24]) {
    a.loadWord(1, entry, offset);
    a.loadWord(2, program, offset);
    a.jumpIfNotEqual(1, 2, 'skip');
  }
  a.loadWord(1, entry, 32);
  a.jumpIfNotEqual(1, dataLength, 'skip');
  a.move(2, entry);
  a.add(2, immediate(ENTRY_HEADER_BYTES));
  a.move(3, input);
  a.label('compare');
  a.jumpIfAtLeast(3, program, 'found');
  a.loadByte(0, 2, 0);
  a.loadByte(1, 3, 0);
  a.jumpIfNotEqual(0, 1, 'skip');
  a.add(2, immediate(1));
  a.add(3, immediate(1));
  a.jump('compare');
  const passHeaderAndData = () => {
    a.loadWord(1, entry, 32);
    a.align(1);
    a.loadWord(2, entry, 40);
    a.add(entry, immediate(ENTRY_HEADER_BYTES));
    a.add(entry, 1);
  };
  a.label('skip');
  passHeaderAndData();
  a.add(entry, 2);
  a.jump('find');
  a.label('found');
  passHeaderAndData();
  a.move(end, entry);
  a.add(end, 2);

  const [at, length] = [7, 9] as const;
  a.label('record');
  a.jumpIfAtLeast(at, end, 'success');
  a.loadWord(1, at, 0);
  a.loadWord(length, at, 8);
  a.add(at, immediate(RECORD_HEADER_BYTES));
  for (const [name, operation] of Object.entries(operations)) a.jumpIfEqual(1, operation, name);
  a.jump('success');

  a.label('logData');
  a.storeWord(FRAME, frame.slice, at);
  a.storeWord(FRAME, frame.slice + 8, length);
  a.move(1, FRAME);
  a.add(1, immediate(frame.slice));
  a.move(2, immediate(1));
  a.callSystem('sol_log_data');
  a.jump('next record');

  for (const [name, systemCall] of [
    ['log', 'sol_log_'],
    ['setReturnData', 'sol_set_return_data'],
  ] as const) {
    a.label(name);
    a.move(1, at);
    a.move(2, length);
    a.callSystem(systemCall);
    a.jump('next record');
  }

  a.label('call');
  a.loadWord(6, FRAME, frame.metasAt);
  a.move(2, at);
  a.add(2, immediate(48));
  a.loadWord(3, at, 32);
  a.label('meta');
  a.jumpIfEqual(3, 0, 'invoke');
  a.storeWord(6, 0, 2);
  for (const flag of [0, 1]) {
    a.loadByte(4, 2, 32 + flag);
    a.storeByte(6, 8 + flag, 4);
  }
  a.add(6, immediate(META_BYTES));
  a.add(2, immediate(CALLED_BYTES));
  a.add(3, immediate(-1));
  a.jump('meta');
  a.label('invoke');
  a.storeWord(FRAME, frame.instruction, at); // program
  a.loadWord(3, FRAME, frame.metasAt);
  a.storeWord(FRAME, frame.instruction + 8, 3);
  a.loadWord(3, at, 32);
  a.storeWord(FRAME, frame.instruction + 16, 3);
  a.storeWord(FRAME, frame.instruction + 24, 2); // data
  a.loadWord(3, at, 40);
  a.storeWord(FRAME, frame.instruction + 32, 3);
  a.move(1, FRAME);
  a.add(1, immediate(frame.instruction));
  a.loadConstant(2, HEAP);
  a.loadWord(3, FRAME, frame.count);
  a.loadConstant(4, HEAP);
  a.move(5, immediate(0));
  a.callSystem('sol_invoke_signed_c');

  a.label('next record');
  a.align(length);
  a.add(at, length);
  a.jump('record');

  a.label('fail');
  a.loadWord(0, at, 0);
  a.exit();
  a.label('success');
  a.move(0, immediate(0));
  a.exit();
  return a.toElf();
}

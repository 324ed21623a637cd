/** An assembler for Solana's virtual machine (SBF version 0) that writes ELF files its loader accepts. */

export type Register = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10;
type Operand = Register | { readonly immediate: number };

export const immediate = (value: number) => ({ immediate: value });

const INSTRUCTION_BYTES = 8;

/** Registers 1 to 5 are arguments and lost in calls, 6 to 9 are kept, 10 is the end of the stack frame. */
export function createAssembler() {
  const code: Buffer[] = [];
  const labels = new Map<string, number>();
  const jumps: { readonly at: number; readonly target: string }[] = [];
  const systemCalls: { readonly at: number; readonly name: string }[] = [];

  const emit = (opcode: number, to: number, from: number, offset: number, value: number): void => {
    const bytes = Buffer.alloc(INSTRUCTION_BYTES);
    bytes.writeUInt8(opcode, 0);
    bytes.writeUInt8((from << 4) | to, 1);
    bytes.writeInt16LE(offset, 2);
    bytes.writeInt32LE(value, 4);
    code.push(bytes);
  };
  /** Arithmetic has one opcode for registers and one for constants. */
  const compute = (withRegister: number, withConstant: number, to: Register, from: Operand): void => {
    if (typeof from === 'number') emit(withRegister, to, from, 0, 0);
    else emit(withConstant, to, 0, 0, from.immediate);
  };
  const jumpTo = (opcode: number, to: number, from: number, value: number, target: string): void => {
    jumps.push({ at: code.length, target });
    emit(opcode, to, from, 0, value);
  };

  const assembled = (): Buffer => {
    for (const { at, target } of jumps) {
      const place = labels.get(target);
      if (place === undefined) throw new Error(`There is no label ${target}.`);
      code[at]?.writeInt16LE(place - at - 1, 2);
    }
    return Buffer.concat(code);
  };

  return {
    label: (name: string) => void labels.set(name, code.length),
    /** `to = from` */
    move: (to: Register, from: Operand) => compute(0xbf, 0xb7, to, from),
    /** A constant of 64 bits. */
    loadConstant(to: Register, value: bigint) {
      emit(0x18, to, 0, 0, Number(BigInt.asIntN(32, value)));
      emit(0, 0, 0, 0, Number(BigInt.asIntN(32, value >> 32n)));
    },
    add: (to: Register, from: Operand) => compute(0x0f, 0x07, to, from),
    multiply: (to: Register, factor: number) => emit(0x27, to, 0, 0, factor),
    /** Rounds up to a multiple of eight. */
    align(register: Register) {
      emit(0x07, register, 0, 0, 7);
      emit(0x57, register, 0, 0, -8);
    },
    /** `to = *(base + offset)` */
    loadWord: (to: Register, base: Register, offset: number) => emit(0x79, to, base, offset, 0),
    loadByte: (to: Register, base: Register, offset: number) => emit(0x71, to, base, offset, 0),
    /** `*(base + offset) = from` */
    storeWord: (base: Register, offset: number, from: Register) => emit(0x7b, base, from, offset, 0),
    storeByte: (base: Register, offset: number, from: Register) => emit(0x73, base, from, offset, 0),
    jump: (target: string) => jumpTo(0x05, 0, 0, 0, target),
    jumpIfEqual: (register: Register, value: number, target: string) =>
      jumpTo(0x15, register, 0, value, target),
    jumpIfNotEqual: (register: Register, other: Register, target: string) =>
      jumpTo(0x5d, register, other, 0, target),
    jumpIfAtLeast: (register: Register, other: Register, target: string) =>
      jumpTo(0x3d, register, other, 0, target),
    callSystem(name: string) {
      systemCalls.push({ at: code.length, name });
      // The loader puts the function in.
      emit(0x85, 0, 1, 0, -1);
    },
    exit: () => emit(0x95, 0, 0, 0, 0),
    /** An ELF file of all that was assembled. */
    toElf: () => writeElf(assembled(), systemCalls),
  };
}

const littleEndian = (value: number | bigint, bytes: number): Buffer => {
  const word = Buffer.alloc(8);
  word.writeBigUInt64LE(BigInt(value));
  return word.subarray(0, bytes);
};
const word = (value: number | bigint) => littleEndian(value, 8);
const half = (value: number) => littleEndian(value, 4);
const quarter = (value: number) => littleEndian(value, 2);
const padded = (bytes: Buffer): Buffer => Buffer.concat([bytes, Buffer.alloc((8 - (bytes.length % 8)) % 8)]);

/** Texts with an end each, and where each begins. */
function textTable(names: readonly string[]): { readonly bytes: Buffer; at(name: string): number } {
  const text = `\0${names.map((name) => `${name}\0`).join('')}`;
  return {
    bytes: padded(Buffer.from(text)),
    at: (name) => (name === '' ? 0 : text.indexOf(`\0${name}\0`) + 1),
  };
}

const FILE_HEADER_BYTES = 64;
const SEGMENT_HEADER_BYTES = 56;
const SECTION_HEADER_BYTES = 64;
const SEGMENTS = 3;
const DYNAMIC_ENTRIES = 7;
const RELOCATION_OF_A_CALL = 10n;
/** Of sections, by type, where it is not eight: the empty one and texts. */
const alignments: Readonly<Record<number, number>> = { 0: 0, 3: 1 };

/** A shared object with one section of code and the names of the system calls in it. */
function writeElf(
  text: Buffer,
  calls: readonly { readonly at: number; readonly name: string }[],
): Uint8Array {
  const names = [...new Set(calls.map(({ name }) => name))];
  const symbolNames = textTable(names);
  const textAt = FILE_HEADER_BYTES + SEGMENTS * SEGMENT_HEADER_BYTES;
  const dynamicAt = textAt + text.length;
  const symbolsAt = dynamicAt + DYNAMIC_ENTRIES * 16;
  const symbols = Buffer.concat([
    Buffer.alloc(24),
    // Global and undefined: the loader knows them.
    ...names.map((name) => Buffer.concat([half(symbolNames.at(name)), half(0x10), word(0), word(0)])),
  ]);
  const namesAt = symbolsAt + symbols.length;
  const relocationsAt = namesAt + symbolNames.bytes.length;
  const relocations = Buffer.concat(
    calls.map(({ at, name }) =>
      Buffer.concat([
        word(textAt + at * INSTRUCTION_BYTES),
        word((BigInt(names.indexOf(name) + 1) << 32n) | RELOCATION_OF_A_CALL),
      ]),
    ),
  );
  const dynamic = Buffer.concat(
    (
      [
        [17, relocationsAt],
        [18, relocations.length],
        [19, 16],
        [6, symbolsAt],
        [5, namesAt],
        [10, symbolNames.bytes.length],
        [0, 0],
      ] as const
    ).flatMap(([tag, value]) => [word(tag), word(value)]),
  );
  const sectionNamesAt = relocationsAt + relocations.length;
  const sectionNames = textTable(['.text', '.dynamic', '.dynsym', '.dynstr', '.rel.dyn', '.shstrtab']);
  const sectionsAt = sectionNamesAt + sectionNames.bytes.length;

  const segment = (type: number, flags: number, at: number, size: number) =>
    Buffer.concat([half(type), half(flags), word(at), word(at), word(at), word(size), word(size), word(8)]);
  const section = (
    name: string,
    type: number,
    flags: number,
    {
      at = 0,
      size = 0,
      link = 0,
      info = 0,
      entry = 0,
    }: Partial<Record<'at' | 'size' | 'link' | 'info' | 'entry', number>>,
  ) =>
    Buffer.concat([
      half(sectionNames.at(name)),
      half(type),
      word(flags),
      word(flags === 0 ? 0 : at),
      word(at),
      word(size),
      half(link),
      half(info),
      word(alignments[type] ?? 8),
      word(entry),
    ]);
  const sections = [
    section('', 0, 0, {}),
    section('.text', 1, 6, { at: textAt, size: text.length }),
    section('.dynamic', 6, 3, { at: dynamicAt, size: dynamic.length, link: 4, entry: 16 }),
    section('.dynsym', 11, 2, { at: symbolsAt, size: symbols.length, link: 4, info: 1, entry: 24 }),
    section('.dynstr', 3, 2, { at: namesAt, size: symbolNames.bytes.length }),
    section('.rel.dyn', 9, 2, { at: relocationsAt, size: relocations.length, link: 3, entry: 16 }),
    section('.shstrtab', 3, 0, { at: sectionNamesAt, size: sectionNames.bytes.length }),
  ];
  const header = Buffer.concat([
    Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0]),
    Buffer.alloc(8),
    // A shared object for BPF.
    quarter(3),
    quarter(247),
    half(1),
    word(textAt),
    word(FILE_HEADER_BYTES),
    word(sectionsAt),
    half(0),
    quarter(FILE_HEADER_BYTES),
    quarter(SEGMENT_HEADER_BYTES),
    quarter(SEGMENTS),
    quarter(SECTION_HEADER_BYTES),
    quarter(sections.length),
    quarter(sections.length - 1),
  ]);
  return new Uint8Array(
    Buffer.concat([
      header,
      segment(1, 5, textAt, text.length),
      segment(1, 4, dynamicAt, sectionNamesAt - dynamicAt),
      segment(2, 6, dynamicAt, dynamic.length),
      text,
      dynamic,
      symbols,
      symbolNames.bytes,
      relocations,
      sectionNames.bytes,
      ...sections,
    ]),
  );
}

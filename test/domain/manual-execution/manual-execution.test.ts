/** The parts of manual executions that need no chain: encoding, attestations, inputs of other servers, and gas. */
import {
  concat,
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  keccak256,
  numberToHex,
  parseAbi,
  parseAbiParameters,
  size,
} from 'viem';
import { describe, expect, test } from 'vitest';
import { encodeCall, parseFunction } from '../../../src/domain/manual-execution/abi-encoding.ts';
import { prepareVerified } from '../../../src/domain/manual-execution/prepared-execution.ts';
import {
  attestationNeed,
  parseExactJson,
  readLaneMessage,
  UnusableInputsError,
} from '../../../src/domain/manual-execution/ramp-messages.ts';
import { computedGas, transactionGas } from '../../../src/domain/manual-execution/transaction-gas.ts';
import { findNetwork } from '../../../src/domain/networks/networks.ts';

test('calls are encoded as the library encodes them: tuples in place and by offset, nested lists, empty ones', () => {
  const values = {
    fixed: { id: 7n, flag: true },
    moving: { text: '0x010203' as Hex, lists: [['0x' as Hex], [], [`0x${'ab'.repeat(40)}` as Hex]] },
    pairs: [{ to: `0x${'11'.repeat(20)}` as Hex, amount: 2n ** 256n - 1n }],
    tag: '0x01020304' as Hex,
  };
  const [a, b, c, d] = [values.fixed, values.moving, values.pairs, values.tag];
  expect(
    encodeCall(
      parseFunction(
        'f((uint64 id,bool flag) fixed,(bytes text,bytes[][] lists) moving,(address to,uint256 amount)[] pairs,bytes4 tag)',
      ),
      values,
    ),
  ).toBe(
    encodeFunctionData({
      abi: parseAbi([
        'struct Fixed { uint64 id; bool flag; }',
        'struct Moving { bytes text; bytes[][] lists; }',
        'struct Pair { address to; uint256 amount; }',
        'function f(Fixed fixed_, Moving moving, Pair[] pairs, bytes4 tag)',
      ]),
      args: [a, b, c, d],
    }),
  );
  expect(() => encodeCall(parseFunction('f(uint8 small)'), { small: 256n })).toThrow(RangeError);
});

const words = (...numbers: readonly bigint[]) =>
  encodeAbiParameters(
    numbers.map(() => ({ type: 'uint256' })),
    [...numbers],
  );

test.each<readonly [what: string, data: Hex, need: 'needed' | 'none' | 'unknown']>([
  ['nothing', '0x', 'none'],
  ['the decimals of the token', words(18n), 'none'],
  ['the tag of USDC that is locked and released', '0xfa7c07de', 'none'],
  ['the same tag in a word', `0xfa7c07de${'00'.repeat(28)}`, 'none'],
  ['a nonce and a domain, as USDC', words(123_456n, 6n), 'needed'],
  ['a nonce and a domain behind the tag of CCTP V1', `0xf3567d18${'00'.repeat(8)}00000006`, 'needed'],
  ['a domain and a hash behind the tag of CCTP V2', `0xb148ea5f00000006${'9f'.repeat(32)}`, 'needed'],
  ['the same behind the tag of CCTP V2 with verifiers', `0x3047587c00000006${'9f'.repeat(32)}`, 'needed'],
  ['a tag of CCTP alone', '0xb148ea5f', 'needed'],
  ['a hash, as LBTC', `0x${'9f'.repeat(32)}`, 'needed'],
  ['two words that are no nonce and domain', words(2n ** 200n, 6n), 'unknown'],
  ['a number that is no number of decimals', words(2n ** 64n), 'unknown'],
  ['something of the pool’s own', '0x1234', 'unknown'],
])('a pool that leaves %s', (_what, data, need) => {
  expect(attestationNeed(data)).toBe(need);
});

test('a transfer of 1.5 tells its pool data and gas, and one that is cut off is refused', () => {
  const address = `0x${'11'.repeat(20)}` as const;
  const ends = { sourceChainSelector: 1n, destChainSelector: 2n };
  const lane = { ...ends, sourceFamily: 'EVM', onramp: address } as const;
  const tokenData = encodeAbiParameters(
    parseAbiParameters('(bytes pool, bytes token, bytes extraData, uint32 destGasAmount) data'),
    [{ pool: words(1n), token: words(2n), extraData: '0xf3567d18', destGasAmount: 90_000 }],
  );
  const message = (sourceTokenData: Hex) =>
    readLaneMessage(
      {
        sourceChainSelector: '1',
        sender: address,
        receiver: address,
        sequenceNumber: '1',
        gasLimit: '0',
        nonce: '0',
        feeToken: address,
        feeTokenAmount: '0',
        data: '0x',
        tokenAmounts: [{ token: address, amount: '1' }],
        sourceTokenData: [sourceTokenData],
        messageId: words(7n),
      },
      lane,
      '1.5',
    );
  expect(message(tokenData).transfers).toEqual([{ poolData: '0xf3567d18', gas: 90_000n }]);
  expect(() => message(tokenData.slice(0, -128) as Hex).transfers).toThrow(UnusableInputsError);
});

test('integers of other servers are not rounded, and text is left alone', () => {
  const json = '{"a":16015286601757825753,"b":"x: 16015286601757825753, \\"y","c":[5,1e3]}';
  const exact = { a: '16015286601757825753', b: 'x: 16015286601757825753, "y', c: [5, 1000] };
  expect(parseExactJson(json)).toEqual(exact);
  expect(() => parseExactJson('<html>')).toThrow(UnusableInputsError);
});

const prefixed = (lengthBytes: number, data: Hex) =>
  concat([numberToHex(size(data), { size: lengthBytes }), data]);

const offramp = `0x${'aa'.repeat(20)}` as const;
const lane = { sourceChainSelector: 11n, destChainSelector: 22n };

/** A message of 2.0 from network 11 to network 22, for one off-ramp. */
const encodedMessage = concat([
  '0x01',
  numberToHex(11n, { size: 8 }),
  numberToHex(22n, { size: 8 }),
  numberToHex(1n, { size: 8 }),
  numberToHex(416_160, { size: 4 }),
  numberToHex(200_000, { size: 4 }),
  '0x00000000',
  words(0n),
  prefixed(1, words(1n)),
  prefixed(1, offramp),
  prefixed(1, words(2n)),
  prefixed(1, `0x${'bb'.repeat(20)}`),
  prefixed(2, '0x'),
  prefixed(2, '0x'),
  prefixed(2, '0x1234'),
]);
const material = { offramp, encodedMessage, verifierAddresses: [], ccvData: [] };

test('an encoded message is rejected where id, off-ramp or lane are not those that it names itself', () => {
  const id = keccak256(encodedMessage);
  expect(prepareVerified(id, material, lane)).toMatchObject({ offramp, gasLimit: 200_000n });
  expect(() => prepareVerified(`0x${'22'.repeat(32)}`, material, lane)).toThrow(
    /is not the id of the message/,
  );
  const elsewhere = { ...material, offramp: `0x${'cc'.repeat(20)}` };
  expect(() => prepareVerified(id, elsewhere, lane)).toThrow(/for the off-ramp 0xaa.*, not for 0xcc/);
  for (const other of [
    { ...lane, destChainSelector: 23n },
    { ...lane, sourceChainSelector: 12n },
  ])
    expect(() => prepareVerified(id, material, other)).toThrow(/another lane/);
});

const gasOf = (
  changed: { data?: `0x${string}`; receiver?: bigint; others?: bigint; transfers?: number } = {},
) => {
  const { data = `0x${'ab'.repeat(1_000)}`, receiver = 200_000n, others = 0n, transfers = 0 } = changed;
  return computedGas(data, receiver, others, transfers);
};

test('every limit that the off-ramp hands on is covered, with what calls keep back', () => {
  const base = gasOf();
  expect(base).toBeGreaterThan((200_000n * 64n ** 3n) / 63n ** 3n + 21_000n + 16_000n);
  const more = (changed: Parameters<typeof gasOf>[0]) => gasOf(changed) - base;
  expect(more({ receiver: 3_200_000n })).toBeGreaterThan(3_000_000n + 3_000_000n / 63n);
  expect(more({ others: 90_000n, transfers: 1 })).toBeGreaterThan(90_000n + 90_000n);
  // The price of call data alone, at the least that is charged.
  const large = `0x${'ab'.repeat(100_000)}` as const;
  expect(gasOf({ data: large, receiver: 0n })).toBeGreaterThanOrEqual(21_000n + 4_000_000n);
});

describe('an estimate', () => {
  const COMPUTED = 600_000n;
  const on = (network: string, tellsTokenGas = true) => ({
    destChainSelector: BigInt(findNetwork(network)?.selector ?? ''),
    tellsTokenGas,
    computedGas: () => COMPUTED,
  });
  const gasOf = (network: string, estimate: bigint | null, tellsTokenGas?: boolean) =>
    transactionGas(on(network, tellsTokenGas), undefined, estimate);

  test('raises the gas, and never lowers it', () => {
    expect(gasOf('ethereum-mainnet', 700_000n)).toEqual({ gas: 700_000n, note: null });
    expect(gasOf('ethereum-mainnet', 21_000n)).toEqual({ gas: COMPUTED, note: null });
    expect(gasOf('ethereum-mainnet-arbitrum-1', 21_000n)).toEqual({ gas: COMPUTED, note: null });
  });

  test('beyond all measure is not believed', () => {
    const absurd = BigInt(Number.MAX_SAFE_INTEGER);
    const { gas, note } = gasOf('ethereum-mainnet', absurd);
    expect(gas).toBe(COMPUTED);
    expect(note).toContain('not credible');
    expect(gasOf('ethereum-mainnet-zksync-1', absurd)).toMatchObject({
      gas: null,
      note: expect.stringContaining('not credible'),
    });
  });

  test('is needed where the gas cannot be computed: there is none without it, and words say why', () => {
    expect(gasOf('ethereum-testnet-sepolia-base-1', null)).toMatchObject({ gas: COMPUTED });
    expect(gasOf('ethereum-mainnet-arbitrum-1', null)).toMatchObject({
      gas: null,
      note: expect.stringMatching(/arbitrum-1 may count gas otherwise .* Do not let a wallet estimate/),
    });
    expect(gasOf('ethereum-mainnet-arbitrum-1', 5_000_000n)).toEqual({ gas: 5_000_000n, note: null });
    expect(gasOf('ethereum-mainnet', null, false)).toMatchObject({
      gas: null,
      note: expect.stringContaining('do not tell how much gas their token pools get'),
    });
    expect(gasOf('ethereum-mainnet', 700_000n, false)).toEqual({ gas: 700_000n, note: null });
  });
});

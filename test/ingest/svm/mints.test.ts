/** What the indexer makes of the mints of Solana: symbol, name and decimals as the chain has them, whatever they say. */
import { createRequire } from 'node:module';
import { hex } from '@scure/base';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { mintClaims } from '../../../src/ingest/svm/mint-claims.ts';
import { METADATA_PROGRAM, programAddresses } from '../../../src/ingest/svm/program-addresses.ts';
import type { Store } from '../../../src/store/store.ts';
import { TOKEN_PROGRAM } from '../../solana/ccip-calls.ts';
import { mintOf } from '../../solana/ccip-deployment.ts';
import { createSolanaWorld, type SolanaWorld } from '../../solana/ccip-world.ts';
import { addressOf, concat, pubkey, u32, utf8 } from '../../solana/runtime/bytes.ts';
import { differencesFrom, indexWorld } from './indexed-world.ts';

const TOKEN_2022 = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb';
const authority = addressOf('mint authority');

function mintAccount(decimals: number): Uint8Array {
  const data = new Uint8Array(82);
  data.set([1, 0, 0, 0], 0);
  data.set(pubkey(authority), 4);
  data[36] = 5;
  data[44] = decimals;
  data[45] = 1;
  return data;
}

const text = (value: string | Uint8Array, paddedTo = 0): Uint8Array => {
  const bytes = typeof value === 'string' ? utf8(value) : value;
  const padded = new Uint8Array(Math.max(bytes.length, paddedTo));
  padded.set(bytes);
  return concat(u32(padded.length), padded);
};

const u16 = (value: number) => new Uint8Array([value & 255, value >> 8]);

function extendedMint(mint: string, decimals: number, name: string, symbol: string): Uint8Array {
  const metadata = concat(
    pubkey(authority),
    pubkey(mint),
    text(name),
    text(symbol),
    text('https://token.example'),
    u32(0),
  );
  const pointer = concat(pubkey(authority), pubkey(mint));
  const base = new Uint8Array(166);
  base.set(mintAccount(decimals));
  base[165] = 1;
  return concat(base, u16(18), u16(pointer.length), pointer, u16(19), u16(metadata.length), metadata);
}

/** As the program keeps it: texts are filled up with zeros. */
function metaplexAccount(mint: string, name: string | Uint8Array, symbol: string | Uint8Array): Uint8Array {
  return concat(
    new Uint8Array([4]),
    pubkey(authority),
    pubkey(mint),
    text(name, 32),
    text(symbol, 10),
    text('https://token.example', 200),
    new Uint8Array(120),
  );
}

const account = (owner: string, data: Uint8Array) => ({ owner, data });
const MINT = mintOf(0);
const metaplex = (name: string | Uint8Array, symbol: string | Uint8Array, mint = MINT) =>
  account(METADATA_PROGRAM, metaplexAccount(mint, name, symbol));

describe('claims of a mint', () => {
  const classic = account(TOKEN_PROGRAM, mintAccount(6));
  const claims = (symbol: string | null, name: string | null, decimals: number | null) => ({
    symbol,
    name,
    decimals,
  });
  const nothing = claims(null, null, null);
  const usdCoin = metaplexAccount(MINT, 'USD Coin', 'USDC');
  const extended = account(TOKEN_2022, extendedMint(MINT, 9, 'Extended Token', 'EXT'));
  // The account of a token, which anybody can open.
  const holding = new Uint8Array(170);
  holding.set(mintAccount(6));
  holding[165] = 2;

  test.each([
    ['those of its account alone', classic, undefined, claims(null, null, 6)],
    ['those of its metadata', classic, metaplex('USD Coin', 'USDC'), claims('USDC', 'USD Coin', 6)],
    [
      'those of its own extension before the account of another program',
      extended,
      metaplex('Other', 'OTH'),
      claims('EXT', 'Extended Token', 9),
    ],
    ['none without a mint', undefined, metaplex('USD Coin', 'USDC'), nothing],
    ['none of another owner', account(addressOf('someone'), mintAccount(6)), undefined, nothing],
    ['none of an empty account', account(TOKEN_PROGRAM, new Uint8Array(165)), undefined, nothing],
    ['none before it is set up', account(TOKEN_PROGRAM, mintAccount(6).with(45, 0)), undefined, nothing],
    ['none of an account that holds tokens', account(TOKEN_2022, holding), undefined, nothing],
    ['no texts of another mint', classic, metaplex('USD Coin', 'USDC', mintOf(1)), claims(null, null, 6)],
    ['no texts of another owner', classic, account(addressOf('someone'), usdCoin), claims(null, null, 6)],
    [
      'no texts of another kind of account',
      classic,
      account(METADATA_PROGRAM, usdCoin.with(0, 6)),
      claims(null, null, 6),
    ],
  ] as const)('are %s', (_, mint, metadata, expected) => {
    expect(mintClaims(MINT, mint, metadata)).toEqual(expected);
  });

  test('are cleaned: controls, directions, long and broken text', () => {
    const { symbol, name } = mintClaims(
      MINT,
      classic,
      metaplex(
        `N${'!'.repeat(10_000)}`,
        concat(utf8('US\u202eD\u0000C\u001b'), new Uint8Array([0xff, 0xfe])),
      ),
    );
    expect(symbol).toBe('US\ufffdD\ufffdC\ufffd\ufffd\ufffd');
    expect(name).toMatch(/^N!{62}…$/);
  });

  test('are never a fault, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), fc.uint8Array({ maxLength: 200 }), (tail, untrusted) => {
        const data = concat(mintAccount(6), new Uint8Array(83), new Uint8Array([1]), tail);
        const claims = mintClaims(MINT, account(TOKEN_2022, data), account(METADATA_PROGRAM, untrusted));
        expect(claims.decimals).toBe(6);
      }),
    );
  });

  test('are at the places where the token library puts them', () => {
    const require = createRequire(new URL('../../lab/package.json', import.meta.url));
    const spl = require('@solana/spl-token') as {
      unpackMint(
        address: unknown,
        info: object,
        program: unknown,
      ): { readonly decimals: number; readonly tlvData: Buffer };
      getExtensionData(type: number, tlvData: Buffer): Buffer | null;
      readonly ExtensionType: { readonly TokenMetadata: number };
    };
    const metadata = require('@solana/spl-token-metadata') as {
      unpack(data: Uint8Array): { readonly name: string; readonly symbol: string };
    };
    const { PublicKey } = require('@solana/web3.js') as { PublicKey: new (text: string) => unknown };
    const program = new PublicKey(TOKEN_2022);
    const data = Buffer.from(extendedMint(MINT, 9, 'Extended Token', 'EXT'));
    const unpacked = spl.unpackMint(new PublicKey(MINT), { owner: program, data }, program);
    expect(unpacked.decimals).toBe(9);
    const extension = spl.getExtensionData(spl.ExtensionType.TokenMetadata, unpacked.tlvData);
    expect(metadata.unpack(extension ?? new Uint8Array())).toMatchObject({
      name: 'Extended Token',
      symbol: 'EXT',
    });
  });
});

async function claimsOf(store: Store, world: SolanaWorld, index: number) {
  const { tokens } = await store.tokens({
    network: world.network.selector,
    addresses: [hex.encode(pubkey(mintOf(index)))],
    limit: 2,
  });
  return tokens.map(({ address, symbol, name, decimals, readAt }) => ({
    address,
    symbol,
    name,
    decimals,
    isRead: readAt !== null,
  }));
}

test('an indexer asks a cluster about its mints: classic, extended, huge, and one that is not there', async () => {
  const world = createSolanaWorld();
  const { cluster } = world;
  cluster.setAccount(mintOf(0), { owner: TOKEN_PROGRAM, data: mintAccount(6) });
  cluster.setAccount(programAddresses.metadata(mintOf(0)), {
    owner: METADATA_PROGRAM,
    data: metaplexAccount(mintOf(0), 'USD\u202e Coin', 'USDC'),
  });
  const huge = concat(extendedMint(mintOf(1), 9, 'Extended Token', 'EXT'), new Uint8Array(1_000_000));
  cluster.setAccount(mintOf(1), { owner: TOKEN_2022, data: huge });
  world.send({ tokens: [5n, 6n, 7n] });
  const { store } = await indexWorld(world, {});
  expect(await differencesFrom(world, store)).toEqual([]);
  const read = (symbol: string | null, name: string | null, decimals: number | null, index: number) => [
    { address: mintOf(index), symbol, name, decimals, isRead: true },
  ];
  expect(await claimsOf(store, world, 0)).toEqual(read('USDC', 'USD\ufffd Coin', 6, 0));
  expect(await claimsOf(store, world, 1)).toEqual(read('EXT', 'Extended Token', 9, 1));
  expect(await claimsOf(store, world, 2)).toEqual(read(null, null, null, 2));
  expect((await store.networkProgress()).map(({ problem }) => problem)).toEqual([null]);
});

/** What a typed or pasted text can mean, before anything is looked up. */
import { randomBytes } from 'node:crypto';
import { base58 } from '@scure/base';
import { describe, expect, test } from 'vitest';
import { base58Ranges } from '../../../src/domain/filters/base58-ranges.ts';
import { meaningsOf } from '../../../src/domain/filters/search-text.ts';
import { evmAddress, hashOf, svmAddress } from '../../fixtures.ts';

const id = hashOf('a message');
const account = evmAddress('an account');
const solanaAccount = svmAddress('an account');

/** The likeliest meaning. */
const first = (text: string) => meaningsOf(text)[0];
const kinds = (text: string) => meaningsOf(text).map(({ kind }) => kind);

describe('ids, transactions and addresses', () => {
  test.each([
    ['as they are', id],
    ['without 0x', id.slice(2)],
    ['in capitals', id.toUpperCase()],
    ['in quotes, with spaces', `  "${id}" `],
    ['in the URL of a CCIP explorer', `https://ccip.chain.link/msg/${id}`],
    ['in the URL of this explorer', `http://127.0.0.1:8080/message/${id}`],
    ['in the URL of a block explorer', `https://sepolia.etherscan.io/tx/${id}#eventlog`],
    ['in a URL without a scheme', `www.example.com/tx/${id}`],
    ['in a query', `https://example.com/search?hash=${id}&page=2`],
  ])('of 32 bytes are read %s', (_, text) => {
    expect(first(text)).toEqual({ kind: 'hash', text: expect.stringMatching(new RegExp(`^${id}$`, 'i')) });
  });

  test.each([
    ['as they are', account],
    ['without 0x', account.slice(2)],
    ['in the URL of a block explorer', `https://sepolia.etherscan.io/address/${account}`],
    ['as a token in a URL', `https://sepolia.etherscan.io/token/${account}?a=1`],
  ])('of an EVM chain are read %s', (_, text) => {
    expect(first(text)).toEqual({ kind: 'address', text: account });
  });

  test('of Solana are read as they are and from a URL', () => {
    expect(first(solanaAccount)).toEqual({ kind: 'address', text: solanaAccount });
    const url = `https://explorer.solana.com/address/${solanaAccount}?cluster=devnet`;
    expect(first(url)).toEqual({ kind: 'address', text: solanaAccount });
  });

  test.each([
    ['0x2f63…aa14', '2f63', 'aa14'],
    ['2f63…AA14', '2f63', 'aa14'],
    ['0x2f630001...aa14', '2f630001', 'aa14'],
    [id.slice(0, 10), id.slice(2, 10), ''],
    [id.slice(2, 12), id.slice(2, 12), ''],
    ['DXDb…HvK9', 'DXDb', 'HvK9'],
  ])('shortened as %s are looked up', (text, head, tail) => {
    expect(meaningsOf(text)).toContainEqual({ kind: 'shortened', head, tail });
  });

  test('with commas are terms that all have to match', () => {
    expect(meaningsOf(`${id}, ${account.slice(2)}`)).toEqual([{ kind: 'terms', text: `${id},${account}` }]);
    expect(meaningsOf(`${id}, nonsense`)).toEqual([]);
  });
});

test('a network is either end before it is one of them', () => {
  expect(meaningsOf('ethereum-testnet-sepolia').slice(0, 3)).toMatchObject([
    { kind: 'network', network: { name: 'ethereum-testnet-sepolia' } },
    { kind: 'source' },
    { kind: 'dest' },
  ]);
});

test.each(['sepolia to fuji', 'sepolia -> fuji', 'sepolia→fuji', 'sepolia > fuji'])(
  '%s is a lane',
  (text) => {
    expect(first(text)).toMatchObject({
      kind: 'lane',
      source: { name: 'ethereum-testnet-sepolia' },
      dest: { name: 'avalanche-testnet-fuji' },
    });
  },
);

test('a status is known by its name or the beginning of it', () => {
  expect(first('failed')).toEqual({ kind: 'status', status: 'FAILED' });
  expect(first('source fin')).toEqual({ kind: 'status', status: 'SOURCE_FINALIZED' });
});

test.each(['', '   ', '…', 'https://example.com/', 'x'.repeat(3_000)])('%j means nothing', (text) => {
  expect(kinds(text)).toEqual([]);
});

test('the ranges of base58 digits hold exactly the values whose text begins with them', () => {
  for (const length of [32, 64]) {
    for (let round = 0; round < 200; round++) {
      const bytes = randomBytes(length);
      bytes[0] ||= 1;
      const other = randomBytes(length);
      const head = base58.encode(bytes).slice(0, 4);
      const holds = (value: Buffer) =>
        base58Ranges(head).some(
          ({ lowest, highest }) =>
            lowest.length === length && value.compare(lowest) >= 0 && value.compare(highest) <= 0,
        );
      expect(holds(bytes)).toBe(true);
      expect(holds(other)).toBe(base58.encode(other).startsWith(head));
    }
  }
  expect(base58Ranges('1111')).toEqual([]);
});

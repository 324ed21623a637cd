/** Reasons of failures with amounts, in the units of the token that they name. */
import { encodeErrorResult, parseAbi } from 'viem';
import { expect, test } from 'vitest';
import { parseAddress } from '../../../src/domain/addresses.ts';
import { failureReason } from '../../../src/domain/failures/failure-reason.ts';
import {
  createNames,
  type NamedToken,
  reasonInUnits,
  reasonToken,
} from '../../../src/domain/names/message-names.ts';
import { fuji, makeToken, sepolia } from '../../fixtures.ts';

const abi = parseAbi([
  'error TokenHandlingError(address target, bytes err)',
  'error TokenRateLimitReached(uint256 minWaitInSeconds, uint256 available, address tokenAddress)',
  'error TokenMaxCapacityExceeded(uint256 capacity, uint256 requested, address tokenAddress)',
  'error Error(string message)',
  'error ReceiverError(bytes err)',
]);
const { destTokenAddress } = makeToken(sepolia, fuji, 'LINK');
const address = parseAddress(destTokenAddress, 'EVM')?.text as `0x${string}`;
const link: NamedToken = {
  chainSelector: fuji.chainSelector,
  address,
  symbol: 'LINK',
  name: null,
  decimals: 18,
  source: 'chain',
};
const names = createNames([link], []);
const reasonOf = (data: `0x${string}`) => failureReason({ returnData: Buffer.from(data.slice(2), 'hex') });
const refusal = (err: `0x${string}`) =>
  reasonOf(encodeErrorResult({ abi, errorName: 'TokenHandlingError', args: [address, err] }));
const limited = refusal(
  encodeErrorResult({ abi, errorName: 'TokenRateLimitReached', args: [60n, 1_500n * 10n ** 15n, address] }),
);

test('a pool that refuses is shown in units of its token', () => {
  expect(limited.text).toContain('1,500,000,000,000,000,000 smallest units');
  expect(reasonInUnits(limited, fuji, names)).toBe(
    `The token or its pool says: the token pool's rate limit is used up: 1.5 LINK were available. (LINK: ${address})`,
  );
  const capacity = refusal(
    encodeErrorResult({
      abi,
      errorName: 'TokenMaxCapacityExceeded',
      args: [10n ** 18n, 2_000n * 10n ** 18n, address],
    }),
  );
  expect(reasonInUnits(capacity, fuji, names)).toBe(
    `The token or its pool says: the amount (2,000 LINK) is more than the token pool's rate limit ever allows at once (1 LINK). (LINK: ${address})`,
  );
});

test('a receiver that uses the name of that error is shown in its own figures', () => {
  const inner = encodeErrorResult({ abi, errorName: 'TokenRateLimitReached', args: [60n, 5n, address] });
  const claimed = reasonOf(encodeErrorResult({ abi, errorName: 'ReceiverError', args: [inner] }));
  expect(reasonInUnits(claimed, fuji, names)).toBe(claimed.text);
  expect(reasonToken(claimed)).toBeUndefined();
});

test('without decimals, on another network and for texts of contracts it stays as it is', () => {
  const unknown = createNames([{ ...link, decimals: null }], []);
  expect(reasonInUnits(limited, fuji, unknown)).toBe(limited.text);
  expect(reasonInUnits(limited, sepolia, names)).toBe(limited.text);
  const quoted = reasonOf(encodeErrorResult({ abi, errorName: 'Error', args: ['5 smallest units'] }));
  expect(reasonInUnits(quoted, fuji, names)).toBe(quoted.text);
});

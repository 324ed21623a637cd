/** Reasons of failures with amounts, in the units of the token that they name. */
import { expect, test } from 'vitest';
import { parseAddress } from '../../../src/domain/addresses.ts';
import { failureReason } from '../../../src/domain/failures/failure-reason.ts';
import {
  createNames,
  type NamedToken,
  reasonInUnits,
  reasonToken,
} from '../../../src/domain/names/message-names.ts';
import { encodeError as encode } from '../../fixtures/revert-data.ts';
import { fuji, makeToken, sepolia } from '../../fixtures.ts';

const { destTokenAddress } = makeToken(sepolia, fuji, 'LINK');
const address = parseAddress(destTokenAddress, 'EVM')?.text as `0x${string}`;
const about = { symbol: 'LINK', name: null, decimals: 18, source: 'chain' } as const;
const link: NamedToken = { chainSelector: fuji.chainSelector, address, ...about };
const names = createNames([link], []);
const reasonOf = (data: `0x${string}`) => failureReason({ returnData: Buffer.from(data.slice(2), 'hex') });
const ofPool = (err: `0x${string}`) => reasonOf(encode('TokenHandlingError(address,bytes)', address, err));
const rateLimit = (available: bigint) =>
  encode('TokenRateLimitReached(uint256,uint256,address)', 60n, available, address);
const limited = ofPool(rateLimit(1_500n * 10n ** 15n));

test('the reason of a pool is shown in units of its token', () => {
  expect(limited.text).toContain('1,500,000,000,000,000,000 smallest units');
  expect(reasonInUnits(limited, fuji, names)).toBe(
    `The token or its pool says: the token pool's rate limit is used up: 1.5 LINK were available. (LINK: ${address})`,
  );
  const amounts = [10n ** 18n, 2_000n * 10n ** 18n];
  const exceeded = encode('TokenMaxCapacityExceeded(uint256,uint256,address)', ...amounts, address);
  const capacity = ofPool(exceeded);
  expect(reasonInUnits(capacity, fuji, names)).toBe(
    `The token or its pool says: the amount (2,000 LINK) is more than the token pool's rate limit ever allows at once (1 LINK). (LINK: ${address})`,
  );
});

test('a receiver that uses the name of that error is shown in its own figures', () => {
  const claimed = reasonOf(encode('ReceiverError(bytes)', rateLimit(5n)));
  expect(reasonInUnits(claimed, fuji, names)).toBe(claimed.text);
  expect(reasonToken(claimed)).toBeUndefined();
});

test('without decimals, on another network and for texts of contracts it stays as it is', () => {
  const unknown = createNames([{ ...link, decimals: null }], []);
  expect(reasonInUnits(limited, fuji, unknown)).toBe(limited.text);
  expect(reasonInUnits(limited, sepolia, names)).toBe(limited.text);
  const quoted = reasonOf(encode('Error(string)', '5 smallest units'));
  expect(reasonInUnits(quoted, fuji, names)).toBe(quoted.text);
});

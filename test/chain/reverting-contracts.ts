/** Receivers and token pools of the lab that reject a message in every manner, and what people are told of it. */
import { encodeErrorResult, type Hex, parseAbi } from 'viem';
import type { Reason } from '../../src/api/routes/history-schema.ts';
import type { Lab, Version } from '../lab/lab.ts';
import { ccipContract } from '../lab/solidity.ts';
import { unlimited } from '../lab/token-pools.ts';

const errors = parseAbi([
  'error Error(string message)',
  'error Panic(uint256 code)',
  'error EnforcedPause()',
  'error TooSpicy(uint8 level)',
  'error CallFailed(uint256 index, bytes result)',
  'error CursedByRMN()',
]);
type Errors = typeof errors;
export const encode = (
  errorName: Extract<Errors[number], { type: 'error' }>['name'],
  args: readonly unknown[] = [],
) => encodeErrorResult({ abi: errors, errorName, args } as never);

/** How the receiver rejects, and what people are told. The data is cut off from 2.0 on: some words are lost there. */
export const receiverCases: readonly {
  readonly name: string;
  readonly manner: Hex | 'all-gas';
  readonly code: string;
  readonly text: RegExp;
  readonly textOf20?: RegExp;
}[] = [
  {
    name: 'a message',
    manner: encode('Error', ['not today']),
    code: 'Error',
    text: /“not today”/,
    textOf20: /which the off-ramp has cut off/,
  },
  {
    name: 'a failed check of the compiler',
    manner: encode('Panic', [18n]),
    code: 'Panic',
    text: /a division by zero \(panic 18\)/,
  },
  {
    name: 'an error that is known',
    manner: encode('EnforcedPause'),
    code: 'EnforcedPause',
    text: /^The receiver says: the called contract is paused\.$/,
  },
  {
    name: 'an error that is not known',
    manner: encode('TooSpicy', [9]),
    code: 'unknown-error',
    text: new RegExp(`selector ${encode('TooSpicy', [9]).slice(0, 10)}`),
  },
  {
    name: 'an error inside of another',
    manner: encode('CallFailed', [1n, encode('EnforcedPause')]),
    code: 'EnforcedPause',
    text: /paused/,
    textOf20: /CallFailed/,
  },
  {
    name: 'an error of the off-ramp',
    manner: encode('CursedByRMN'),
    code: 'CursedByRMN',
    text: /^The receiver reverted with CursedByRMN\(\)\. Any contract can use the name/,
  },
  { name: 'nothing', manner: '0x', code: 'no-reason', text: /without a reason/ },
  {
    name: 'all its gas',
    manner: 'all-gas',
    code: 'out-of-gas',
    text: /runs out of gas; its gas limit is 200,000/,
  },
];

/** How the token or its pool on the destination rejects, and what people are told. */
export const poolCases: readonly {
  readonly name: string;
  readonly code: string;
  readonly text: RegExp;
  readonly fixableBy: Reason['fixableBy'];
  refuse(site: PoolSite): Promise<unknown>;
  allow(site: PoolSite): Promise<unknown>;
}[] = [
  {
    name: 'a rate limit that is used up',
    code: 'TokenRateLimitReached',
    text: /^The token or its pool says: the token pool's rate limit is used up/,
    fixableBy: 'anyone',
    refuse: ({ limit }) => limit({ isEnabled: true, capacity: 1_000_000n, rate: 1n }),
    allow: ({ limit }) => limit(unlimited),
  },
  {
    name: 'an amount that the rate limit never allows',
    code: 'TokenMaxCapacityExceeded',
    text: /^The token or its pool says: the amount .*is more than the token pool's rate limit ever allows/,
    fixableBy: 'pool-owner',
    refuse: ({ limit }) => limit({ isEnabled: true, capacity: 2n, rate: 1n }),
    allow: ({ limit }) => limit(unlimited),
  },
  {
    name: 'a pool without liquidity',
    code: 'ERC20InsufficientBalance',
    text: /holds .*of a token/,
    fixableBy: 'pool-owner',
    async refuse({ network, token, pool }) {
      await network.rpc('hardhat_impersonateAccount', [pool]);
      await network.rpc('hardhat_setBalance', [pool, '0xde0b6b3a7640000']);
      const [elsewhere] = network.accounts;
      await token.send('transfer', [elsewhere, await token.read<bigint>('balanceOf', [pool])], {
        from: pool,
      });
    },
    allow: ({ token, pool }) => token.send('mint', [pool, 10n ** 27n]),
  },
  {
    name: 'a paused token',
    code: 'EnforcedPause',
    text: /^The token or its pool says: the called contract is paused\.$/,
    fixableBy: 'pool-owner',
    refuse: ({ token }) => token.send('setPaused', [true]),
    allow: ({ token }) => token.send('setPaused', [false]),
  },
];

type PoolSite = ReturnType<typeof poolSite>;

export function poolSite(lab: Lab, version: Version) {
  const network = lab.b;
  const pool = network.contracts[version]?.pool;
  if (!pool) throw new Error(`The lab has no pool of ${version}`);
  const release = version === '1.2' ? 'v1_4_0' : 'v1_5_1';
  const contract = network.contract(pool, ccipContract(`${release}/lock_release_token_pool`).abi);
  return {
    network,
    token: network.foundation.tokens[0],
    pool,
    /** Sets the limit on what comes in. */
    limit: (config: typeof unlimited) =>
      contract.send('setChainRateLimiterConfig', [lab.a.selector, unlimited, config], {
        from: network.foundation.accounts[version].owner,
      }),
  };
}

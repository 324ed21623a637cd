/** Token pools, and how each version finds them. */
import { type Hex, pad, zeroAddress } from 'viem';
import { type Foundation, PLENTY } from './foundation.ts';
import type { Contract } from './network.ts';
import { ccipContract } from './solidity.ts';

/** In the order of the foundation's tokens. */
export type Pools = readonly [Contract, Contract];

/** 2.0: the safe block, or any number of blocks from one on. */
export const ANY_FINALITY = '0x00010001';

export const unlimited = { isEnabled: false, capacity: 0n, rate: 0n };

interface PoolOptions {
  readonly foundation: Foundation;
  readonly owner: Hex;
  readonly router: Contract;
  readonly rmnProxy: Contract;
  /** By which a version finds its pools. Without one it is 1.2, whose ramps are told them. */
  readonly registry: Contract | undefined;
}

/** Every token gets a pool of 1.5.1 (for 1.2: of 1.4), with enough to release. */
export async function deployPools(options: PoolOptions): Promise<Pools> {
  const [demo, coin] = options.foundation.tokens;
  return [await deployPool(options, demo), await deployPool(options, coin)];
}

/** One token keeps its old pool, as on real networks; the other gets one of 2.0, which takes a share of transfers. */
export async function deployPoolsOf20(options: PoolOptions): Promise<Pools> {
  const [demo, coin] = options.foundation.tokens;
  return [await deployPool(options, demo), await deployPoolOf20(options, coin)];
}

async function deployPool(options: PoolOptions, token: Contract): Promise<Contract> {
  const { foundation, owner, router, rmnProxy, registry } = options;
  const decimals = registry ? [await token.read<number>('decimals')] : [];
  const pool = await foundation.network.deploy(
    ccipContract(`${registry ? 'v1_5_1' : 'v1_4_0'}/lock_release_token_pool`),
    [token.address, ...decimals, [], rmnProxy.address, true, router.address],
    { from: owner },
  );
  await token.send('mint', [pool.address, PLENTY], { from: owner });
  await registerPool(options, token, pool);
  return pool;
}

async function deployPoolOf20(options: PoolOptions, token: Contract): Promise<Contract> {
  const { foundation, owner, router, rmnProxy } = options;
  const from = { from: owner };
  const { network } = foundation;
  const decimals = await token.read<number>('decimals');
  const lockBox = await network.deploy(ccipContract('v2_0_0/erc20_lock_box'), [token.address], from);
  const pool = await network.deploy(
    ccipContract('v2_0_0/lock_release_token_pool'),
    [token.address, decimals, zeroAddress, rmnProxy.address, router.address, lockBox.address],
    from,
  );
  const callers = { addedCallers: [pool.address], removedCallers: [] };
  await lockBox.send('applyAuthorizedCallerUpdates', [callers], from);
  await token.send('mint', [lockBox.address, PLENTY], from);
  await pool.send('setAllowedFinalityConfig', [ANY_FINALITY], from);
  await registerPool(options, token, pool);
  return pool;
}

async function registerPool(
  { registry, owner }: PoolOptions,
  token: Contract,
  pool: Contract,
): Promise<void> {
  if (!registry) return;
  const from = { from: owner };
  await registry.send('proposeAdministrator', [token.address, owner], from);
  await registry.send('acceptAdminRole', [token.address], from);
  await registry.send('setPool', [token.address, pool.address], from);
}

/** What a pool of 2.0 asks for a transfer to the other network: some cents, and a thousandth of the amount. */
export async function setTransferFee(pool: Contract, destChainSelector: bigint, from: Hex): Promise<void> {
  const tokenTransferFeeConfig = {
    destGasOverhead: 100_000,
    destBytesOverhead: 32,
    finalityFeeUSDCents: 3,
    fastFinalityFeeUSDCents: 6,
    finalityTransferFeeBps: 10,
    fastFinalityTransferFeeBps: 20,
    isEnabled: true,
  };
  await pool.send(
    'applyTokenTransferFeeConfigUpdates',
    [[{ destChainSelector, tokenTransferFeeConfig }], []],
    { from },
  );
}

/** Lets pools send to and receive from those of the other network. */
export async function connectPools(
  here: { readonly foundation: Foundation; readonly pools: Pools; readonly owner: Hex },
  there: { readonly foundation: Foundation; readonly pools: Pools },
): Promise<void> {
  for (const index of [0, 1] as const) {
    const update = {
      remoteChainSelector: there.foundation.network.selector,
      remotePoolAddresses: [pad(there.pools[index].address)],
      remoteTokenAddress: pad(there.foundation.tokens[index].address),
      outboundRateLimiterConfig: unlimited,
      inboundRateLimiterConfig: unlimited,
    };
    await here.pools[index].send('applyChainUpdates', [[], [update]], { from: here.owner });
  }
}

/** The endpoints of an EVM network: a pool of nodes that speak `eth_…` methods. */
import { createEndpointPool, type EndpointPoolOptions } from '../../engine/json-rpc/endpoint-pool.ts';
import type { EvmSource } from '../settings.ts';
import type { Chain } from './chain.ts';
import { classifyEvmRpcError } from './evm-rpc-errors.ts';
import { createNode } from './node.ts';

export function createChain(source: EvmSource, options: EndpointPoolOptions): Chain {
  const pool = createEndpointPool(
    source,
    classifyEvmRpcError,
    (endpoint, nodeOptions) => createNode(endpoint, source, nodeOptions),
    options,
  );
  return { network: source.network, ...pool };
}

/** The endpoints of an EVM network: a pool of nodes that speak `eth_…` methods. */
import { createEndpointPool, type EndpointPoolOptions } from '../../engine/json-rpc/endpoint-pool.ts';
import type { EvmSource } from '../settings.ts';
import type { Chain } from './chain.ts';
import { classifyEvmRpcError } from './evm-rpc-errors.ts';
import { createNode } from './node.ts';

export function createChain(source: EvmSource, options: EndpointPoolOptions): Chain {
  const { network, rpc, requestsPerSecond, batchSize } = source;
  const pool = createEndpointPool(
    { networkName: network.name, rpc, requestsPerSecond, batchSize, classifyRpcError: classifyEvmRpcError },
    (endpoint, nodeOptions) =>
      createNode(endpoint, source, {
        ...nodeOptions,
        ...(options.writeLog && { writeLog: options.writeLog }),
      }),
    options,
  );
  return { network, ...pool };
}

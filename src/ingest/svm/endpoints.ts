/** The endpoints of a Solana network: a pool of nodes that speak Solana's methods. */
import { createEndpointPool, type EndpointPoolOptions } from '../engine/json-rpc/endpoint-pool.ts';
import type { Chain } from './chain.ts';
import { createNode } from './node.ts';
import type { SvmSource } from './settings.ts';
import { classifySvmRpcError } from './svm-rpc-errors.ts';

export function createChain(source: SvmSource, options: EndpointPoolOptions): Chain {
  const { network } = source;
  const pool = createEndpointPool(
    source,
    classifySvmRpcError,
    (endpoint, nodeOptions) => createNode(endpoint, network, nodeOptions),
    options,
  );
  return { network, ...pool };
}

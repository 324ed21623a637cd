/** A Solana JSON-RPC endpoint on a real socket that serves a ledger the way a personality does. */
import { type JsonRpcServer, startJsonRpcServer } from '../../json-rpc-server.ts';
import type { Ledger } from '../runtime/ledger.ts';
import { createNode } from './node.ts';
import { archiveNode, type SolanaPersonality } from './personality.ts';

export type SolanaProvider = JsonRpcServer<SolanaPersonality> & { readonly ledger: Ledger };

export interface SolanaProviderOptions {
  readonly personality?: SolanaPersonality;
  readonly port?: number;
}

export async function startSolanaProvider(
  ledger: Ledger,
  { personality = archiveNode, port }: SolanaProviderOptions = {},
): Promise<SolanaProvider> {
  const server = await startJsonRpcServer<SolanaPersonality>({
    personality,
    port,
    answererOf: (endpoint) =>
      createNode(ledger, {
        personality: () => endpoint.personality,
        requests: () => endpoint.requests,
      }),
  });
  return Object.assign(server, { ledger });
}

/** A Solana JSON-RPC endpoint on a real socket that serves a ledger the way a profile does. */
import { type JsonRpcServer, startJsonRpcServer } from '../../json-rpc-server.ts';
import type { Ledger } from '../runtime/ledger.ts';
import { createNode } from './node.ts';
import { archiveNode, type SolanaProfile } from './solana-profile.ts';

export type SolanaProvider = JsonRpcServer<SolanaProfile> & { readonly ledger: Ledger };

export async function startSolanaProvider(ledger: Ledger, profile = archiveNode): Promise<SolanaProvider> {
  const server = await startJsonRpcServer<SolanaProfile>({
    profile,
    answererOf: (endpoint) =>
      createNode(ledger, { profile: () => endpoint.profile, requests: () => endpoint.requests }),
  });
  return Object.assign(server, { ledger });
}

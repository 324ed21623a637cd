/** Inputs of a manual execution as the official client uses them. */
import type { Store } from '../../../src/store/store.ts';
import type { SdkLane } from '../../lab/sdk.ts';
import { calculateManualExecProof, decodeMessage, silent } from '../../lab/sdk-chain.ts';

/** The root that the client computes from the stored inputs of a message. */
export async function servedRoot(store: Store, messageId: string, lane: SdkLane) {
  const inputs = await store.executionInputs(messageId.slice(2));
  if (inputs?.kind !== 'batch') throw new Error(JSON.stringify(inputs));
  const batch = inputs.batch.map((text) => decodeMessage(text));
  const { merkleRoot } = calculateManualExecProof(batch, lane, messageId, inputs.merkleRoot, {
    logger: silent,
  });
  return { merkleRoot, committed: inputs.merkleRoot, offramp: inputs.offramp };
}

import { ponder } from 'ponder:registry';
import { execution, message, root } from 'ponder:schema';

ponder.on('Ramps:CCIPMessageSent', async ({ event, context }) => {
  const { header, sender } = event.args.message;
  await context.db.insert(message).values({
    id: header.messageId,
    sequenceNumber: header.sequenceNumber,
    sender,
    blockNumber: event.block.number,
    transactionHash: event.transaction.hash,
  });
});

ponder.on('Ramps:CommitReportAccepted', async ({ event, context }) => {
  for (const { merkleRoot, minSeqNr, maxSeqNr } of event.args.unblessedMerkleRoots)
    await context.db.insert(root).values({ id: merkleRoot, first: minSeqNr, last: maxSeqNr });
});

ponder.on('Ramps:ExecutionStateChanged', async ({ event, context }) => {
  await context.db
    .insert(execution)
    .values({ id: event.args.messageId, state: event.args.state, transactionHash: event.transaction.hash })
    .onConflictDoUpdate({ state: event.args.state });
});

/** The virtual chain of the bench, with the contracts that Lanescan has to find for itself. */
import { createConfig } from 'ponder';
import { parseAbi } from 'viem';

interface BenchChain {
  readonly id: number;
  readonly rpc: readonly string[];
  readonly requestsPerSecond: number;
  readonly maxRange: number;
  readonly onRamp: `0x${string}`;
  readonly offRamp: `0x${string}`;
}

const chain = JSON.parse(process.env.BENCH_CHAIN ?? '{}') as BenchChain;

const onRampAbi = parseAbi([
  'struct Header { bytes32 messageId; uint64 sourceChainSelector; uint64 destChainSelector; uint64 sequenceNumber; uint64 nonce; }',
  'struct TokenTransfer { address sourcePoolAddress; bytes destTokenAddress; bytes extraData; uint256 amount; bytes destExecData; }',
  'struct Message { Header header; address sender; bytes data; bytes receiver; bytes extraArgs; address feeToken; uint256 feeTokenAmount; uint256 feeValueJuels; TokenTransfer[] tokenAmounts; }',
  'event CCIPMessageSent(uint64 indexed destChainSelector, uint64 indexed sequenceNumber, Message message)',
]);
const offRampAbi = parseAbi([
  'struct Root { uint64 sourceChainSelector; bytes onRampAddress; uint64 minSeqNr; uint64 maxSeqNr; bytes32 merkleRoot; }',
  'struct TokenPrice { address sourceToken; uint224 usdPerToken; }',
  'struct GasPrice { uint64 destChainSelector; uint224 usdPerUnitGas; }',
  'struct PriceUpdates { TokenPrice[] tokenPriceUpdates; GasPrice[] gasPriceUpdates; }',
  'event CommitReportAccepted(Root[] blessedMerkleRoots, Root[] unblessedMerkleRoots, PriceUpdates priceUpdates)',
  'event ExecutionStateChanged(uint64 indexed sourceChainSelector, uint64 indexed sequenceNumber, bytes32 indexed messageId, bytes32 messageHash, uint8 state, bytes returnData, uint256 gasUsed)',
]);

export default createConfig({
  database: { kind: 'postgres', connectionString: process.env.DATABASE_URL },
  chains: {
    bench: {
      id: chain.id,
      rpc: [...chain.rpc],
      maxRequestsPerSecond: chain.requestsPerSecond,
      ethGetLogsBlockRange: chain.maxRange,
    },
  },
  // One contract with two addresses takes half the queries of two contracts.
  contracts: {
    Ramps: {
      abi: [...onRampAbi, ...offRampAbi],
      chain: 'bench',
      address: [chain.onRamp, chain.offRamp],
      startBlock: 0,
    },
  },
});

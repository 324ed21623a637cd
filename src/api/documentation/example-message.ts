/** The example record of the documentation: a message in flight, with every field of the contract, and later ones. */
import type { Message } from '../../domain/message.ts';

type FeeItem = NonNullable<Message['fees']['fixedFeesDetails']['items']>[number];
const fee = (contractAddress: string, feeType: FeeItem['feeType'], amount: string): FeeItem => ({
  contractAddress,
  feeType,
  amount,
});

export const exampleMessage: Message = {
  messageId: '0xec51cfadfc37711e366b090180ed15baa9b9b23b590765a057c1f995e4ad53c6',
  origin: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
  sender: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
  receiver: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  status: 'VERIFYING',
  sourceNetworkInfo: {
    name: 'ethereum-testnet-sepolia',
    chainSelector: '16015286601757825753',
    chainId: '11155111',
    chainFamily: 'EVM',
    displayName: 'Ethereum Sepolia',
  },
  destNetworkInfo: {
    name: 'avalanche-testnet-fuji',
    chainSelector: '14767482510784806043',
    chainId: '43113',
    chainFamily: 'EVM',
    displayName: 'Avalanche Fuji',
  },
  sendTransactionHash: '0xd91f7f7380172de70b605b19c9dd7be0e58a48ec95cb9ad8d1abab8bf22bf897',
  sendTimestamp: '2026-01-31T12:00:00.000Z',
  nonce: null,
  sequenceNumber: '4711',
  onramp: '0x0f867Ca01197f6d46c9B7390F7279B9976cD2daB',
  routerAddress: '0x2C2Ad3cDb0D06389C7eeFBDeA6987f5C070128AF',
  sendBlockNumber: 10101010,
  sendLogIndex: 7,
  receiptTransactionHash: null,
  receiptTimestamp: null,
  deliveryTime: null,
  data: '0x68656c6c6f',
  tokenAmounts: [
    {
      sourceTokenAddress: '0x779877A7B0D9E8603169DdbD7836e478b4624789',
      destTokenAddress: '0x0b9d5D9136855f6FEc3c0993feE6E9CE8a297846',
      sourcePoolAddress: '0x043823536435d1b3ba931761F64565E44befae20',
      amount: '5000000000000000000',
      extraData: null,
      destGasAmount: '90000',
    },
  ],
  extraArgs: {
    gasLimit: '200000',
    allowOutOfOrderExecution: true,
    requestedFinalityConfig: '0x00000000',
    ccvs: ['0xFE0704B90908A534E23C68E6cE3773d0EAb9F2F4', '0xfE71337C6a001522B44a3d85B583B6e76914aD9f'],
    ccvArgs: ['0x', '0x'],
    executor: '0xEbbB90b69191c95014546fB328a1B5D2eC72DB37',
    executorArgs: '0x',
    tokenReceiver: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    tokenArgs: '0x',
  },
  readyForManualExecution: false,
  version: '2.0.0',
  finality: 0,
  verifiers: {
    items: [
      {
        sourceAddress: '0xFE0704B90908A534E23C68E6cE3773d0EAb9F2F4',
        destAddress: '0xB88A0276321bdBF4Eab1457399f099D86562723b',
        metadata: { name: 'Committee', logoUrl: 'https://verifier.example/logo.svg' },
        isRequired: true,
        status: 'COMPLETED',
        verification: {
          data: '0x9f370d5093fa19463452fa5abae8a7c1f5f65b4c',
          timestamp: '2026-01-31T12:14:08.000Z',
        },
      },
      {
        sourceAddress: '0xfE71337C6a001522B44a3d85B583B6e76914aD9f',
        destAddress: '0xa3EFD6703bE1252F75B8D870660db243A74b8Cdb',
        metadata: { name: 'Second opinion' },
        isRequired: false,
        status: 'PENDING',
        verification: null,
      },
    ],
    optionalThreshold: 1,
  },
  executor: { address: '0xEbbB90b69191c95014546fB328a1B5D2eC72DB37' },
  fees: {
    fixedFeesDetails: {
      tokenAddress: '0x779877A7B0D9E8603169DdbD7836e478b4624789',
      totalAmount: '61000000000000000',
      items: [
        fee('0xFE0704B90908A534E23C68E6cE3773d0EAb9F2F4', 'VERIFIER', '20000000000000000'),
        fee('0xfE71337C6a001522B44a3d85B583B6e76914aD9f', 'VERIFIER', '10000000000000000'),
        fee('0x043823536435d1b3ba931761F64565E44befae20', 'TOKEN_POOL', '1000000000000000'),
        fee('0xEbbB90b69191c95014546fB328a1B5D2eC72DB37', 'EXECUTOR', '25000000000000000'),
        fee('0x2C2Ad3cDb0D06389C7eeFBDeA6987f5C070128AF', 'NETWORK', '5000000000000000'),
      ],
    },
  },
  offramp: '0x4d6F7265206F66662D72616d7020616464726573',
};

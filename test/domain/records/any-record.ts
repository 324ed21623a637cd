/** Records as anybody may write them: of every family at either end, in any spelling, with or without what may be missing. */
import fc from 'fast-check';
import { LATEST_TIME } from '../../../src/base/iso-time.ts';
import { type ChainFamily, parseAddress, parseTransactionHash } from '../../../src/domain/addresses.ts';
import { statuses } from '../../../src/domain/lifecycle.ts';
import { networkInfo, sepolia, solanaDevnet, svmAddress, svmSignature } from '../../fixtures.ts';

const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((value) => Buffer.from(value).toString('hex'));
const someText = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 });

/** By family, and one of which our table has nothing. */
export const anyRecordNetworks = {
  EVM: sepolia,
  SVM: solanaDevnet,
  APTOS: networkInfo('aptos-testnet'),
  SUI: networkInfo('sui-testnet'),
  TON: networkInfo('ton-testnet'),
  CANTON: { name: 'canton', chainSelector: '77', chainId: 'canton', chainFamily: 'CANTON' },
  new: { name: 'new', chainSelector: '78', chainId: '78', chainFamily: 'EVM' },
};
const chain = fc.constantFrom(...(Object.keys(anyRecordNetworks) as (keyof typeof anyRecordNetworks)[]));

/** Texts that are addresses of some family, and a few that are of none. */
const address = fc.oneof(
  hex(20).map((digits) => `0x${digits}`),
  hex(20).map((digits) => `0x${'0'.repeat(24)}${digits.toUpperCase()}`),
  hex(32).map((digits) => `0x${digits}`),
  hex(32).map((digits) => svmAddress(digits)),
  hex(32).map((digits) => `0:${digits}`),
  hex(32).map((digits) => `party::1220${digits}`),
  fc.constantFrom('0x1', '0xA::coin::Coin', '11111111111111111111111111111111'),
);
const hash = fc.oneof(
  hex(32).map((digits) => `0x${digits.toUpperCase()}`),
  hex(32).map((digits) => svmSignature(digits)),
  hex(32).map((digits) => svmAddress(digits)),
  hex(32),
);
const familyOf = (at: string) => (at === 'new' ? 'EVM' : at) as ChainFamily;
const addressOf = (at: string) => address.filter((text) => parseAddress(text, familyOf(at)) !== undefined);
const hashOn = (at: string) => hash.filter((text) => parseTransactionHash(text, familyOf(at)) !== undefined);
const decimal = fc
  .tuple(fc.constantFrom('', '0', '000'), fc.bigInt(1n, 2n ** 64n - 1n))
  .map(([zeros, n]) => zeros + n);
const time = fc
  .tuple(
    fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true }),
    fc.constantFrom('Z', '+00:00', '-07:00', '+1400', '-14:00'),
  )
  .map(([date, zone]) => date.toISOString().replace('Z', zone));
const bytes = fc
  .uint8Array({ maxLength: 8 })
  .map((value) => `0x${Buffer.from(value).toString('hex').toUpperCase()}`);

export const anyRecord = fc.tuple(chain, chain).chain(([from, to]) => {
  const onSource = addressOf(from);
  const onDest = addressOf(to);
  const network = (at: keyof typeof anyRecordNetworks) =>
    fc.record({
      name: someText,
      chainSelector: fc.constant(anyRecordNetworks[at].chainSelector),
      chainId: someText,
      chainFamily: fc.constant(anyRecordNetworks[at].chainFamily),
      displayName: fc.option(someText),
    });
  const item = fc
    .tuple(
      fc.record({
        sourceAddress: onSource,
        destAddress: onDest,
        metadata: fc.record({ name: someText, logoUrl: fc.webUrl() }, { requiredKeys: ['name'] }),
        isRequired: fc.boolean(),
      }),
      fc.option(fc.record({ data: bytes, timestamp: time })),
    )
    .map(([rest, verification]) => ({
      ...rest,
      status: verification ? 'COMPLETED' : 'PENDING',
      verification,
    }));
  const nullable = <T>(value: fc.Arbitrary<T>) => fc.option(value, { freq: 3 });
  const required = {
    messageId: hex(32).map((digits) => `0x${digits.toUpperCase()}`),
    origin: onSource,
    sender: onSource,
    receiver: onDest,
    status: fc.constantFrom(...statuses),
    sourceNetworkInfo: network(from),
    destNetworkInfo: network(to),
    sendTransactionHash: hashOn(from),
    sendTimestamp: time,
    sequenceNumber: decimal,
    onramp: onSource,
    sendBlockNumber: fc.maxSafeNat(),
    sendLogIndex: fc.maxSafeNat(),
    tokenAmounts: fc.array(
      fc.record({
        sourceTokenAddress: onSource,
        destTokenAddress: onDest,
        sourcePoolAddress: onSource,
        amount: decimal,
        extraData: nullable(someText),
        destGasAmount: nullable(decimal),
      }),
      { maxLength: 3 },
    ),
    extraArgs: fc.oneof(
      fc.record(
        {
          gasLimit: decimal,
          allowOutOfOrderExecution: fc.boolean(),
          requestedFinalityConfig: fc.constantFrom('0x00000000', '0x00010000', '0x00000005'),
          ccvs: fc.array(onSource, { maxLength: 2 }),
          receiverObjectIds: fc.array(onDest, { maxLength: 2 }),
        },
        { requiredKeys: ['gasLimit', 'allowOutOfOrderExecution'] },
      ),
      fc.record({
        computeUnits: fc.nat(),
        accountIsWritableBitmap: someText,
        allowOutOfOrderExecution: fc.boolean(),
        tokenReceiver: onDest,
        accounts: fc.array(onDest, { maxLength: 3 }),
      }),
    ),
    readyForManualExecution: fc.boolean(),
    finality: fc.nat(),
    fees: fc.record({
      fixedFeesDetails: fc.record(
        {
          tokenAddress: onSource,
          totalAmount: decimal,
          items: fc.array(
            fc.record({
              contractAddress: onSource,
              feeType: fc.constantFrom('VERIFIER', 'EXECUTOR', 'TOKEN_POOL', 'NETWORK'),
              amount: decimal,
            }),
            { maxLength: 3 },
          ),
        },
        { requiredKeys: ['tokenAddress', 'totalAmount'] },
      ),
    }),
  };
  const mayBeMissing = {
    nonce: nullable(decimal),
    routerAddress: nullable(onSource),
    receiptTransactionHash: nullable(hashOn(to)),
    receiptTimestamp: nullable(time),
    deliveryTime: nullable(fc.integer({ min: -LATEST_TIME, max: LATEST_TIME })),
    data: nullable(bytes),
    version: nullable(fc.constantFrom('1.5.0', '1.6.0', '2.0.0', '1.7.0-dev')),
    verifiers: nullable(fc.record({ items: fc.array(item, { maxLength: 3 }), optionalThreshold: fc.nat(3) })),
    executor: nullable(fc.record({ address })),
    offramp: onDest,
    encodedMessage: bytes,
    reportedStatus: fc.constant('UNCONFIRMED'),
    // As JSON has it: there is no -0.
    laneTier: fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown),
    anotherMember: someText,
  };
  return fc.record(
    { ...required, ...mayBeMissing },
    { requiredKeys: Object.keys(required) as (keyof typeof required)[] },
  );
});

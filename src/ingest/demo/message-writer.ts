/**
 * Generates simulated messages and their senders from a lane and a sequence number.
 *
 * Addresses, hashes and numbers are in the canonical notation of the record. Identifiers derive from seed, lane and number
 * alone, so they do not depend on the time.
 */
import type { SentMessage } from '../../domain/facts.ts';
import type { Fees, TokenAmount, Verifiers } from '../../domain/message.ts';
import { type TokenClaims, type TokenKey, tokenKey, tokenKeyOf } from '../../domain/names/tokens.ts';
import type { Network } from '../../domain/networks/networks.ts';
import { networkInfo } from '../engine/event-facts.ts';
import type { Chain } from './chain.ts';
import { encodedBytes, word } from './outcome.ts';
import {
  bursts,
  type LaneProfile,
  phrases,
  population,
  senderKinds,
  type TokenName,
  tokens,
  trafficMixes,
  type VerifierSet,
  verifierSets,
} from './parameters.ts';
import { type Derivation, Randomness } from './randomness.ts';

/** A lane with its addresses. */
export type Route = Readonly<ReturnType<typeof createRoute>>;

export function createRoute(
  profile: LaneProfile,
  { network: source, blockMs }: Chain,
  { network: dest }: Chain,
  derive: Derivation,
) {
  const { version, assurance } = profile;
  const contract = (network: Network, name: string): string =>
    derive.address(network.family, `${name} on ${network.name}`);
  // Up to 1.5 each lane has its own on-ramp; since then a network has one for all lanes.
  const onRamp = version === '1.5.0' ? `on-ramp to ${dest.name}` : `on-ramp ${version}`;
  const pendingVerifiers = ({ required, optional }: VerifierSet): Verifiers => ({
    items: [...required, ...optional].map((name) => ({
      sourceAddress: contract(source, `verifier ${name}`),
      destAddress: contract(dest, `verifier ${name}`),
      metadata: { name },
      isRequired: required.includes(name),
      status: 'PENDING',
      verification: null,
    })),
    optionalThreshold: optional.length > 0 ? 1 : 0,
  });
  const key = `${source.name} to ${dest.name}`;
  return {
    /** Identifies the lane in derived values. */
    key,
    /** Seed of the transactions; messages have their own. */
    transactionSeed: derive.digest(`envelopes ${key}`),
    sendTransactions: derive.transactionHashes(source.family, `send ${key}`),
    profile,
    source,
    dest,
    lane: {
      sourceChainSelector: source.selector,
      destChainSelector: dest.selector,
      // On Solana one program is both router and on-ramp.
      onramp: contract(source, source.family === 'SVM' ? 'router' : onRamp),
    },
    router: contract(source, 'router'),
    executor: contract(source, 'executor'),
    /** LINK first, then the wrapped native token. */
    feeTokens: [contract(source, 'token LINK'), contract(source, 'wrapped native token')] as const,
    tokens: trafficMixes[profile.trafficMix].tokens.map((name) => ({
      name,
      sourceTokenAddress: contract(source, `token ${name}`),
      destTokenAddress: contract(dest, `token ${name}`),
      sourcePoolAddress: contract(source, `pool ${name}`),
      destGasAmount: tokens[name].destGas,
    })),
    /** Their state when a message is sent; null on lanes that commit instead. */
    verifiers:
      assurance in verifierSets
        ? pendingVerifiers(verifierSets[assurance as keyof typeof verifierSets])
        : null,
    /** A custom number of confirmations is chosen to be faster than finality. */
    customDepths: blockMs >= 5_000 ? [1] : [1, 2, 3],
  };
}

/** The tokens of all lanes, each once, as their contracts would describe them. */
export function tokensOf(routes: readonly Route[]): readonly (TokenKey & { readonly claims: TokenClaims })[] {
  const claimed = (network: Network, address: string, symbol: TokenName) => {
    const key = tokenKeyOf(network.selector, address, network.family);
    const { called: name } = tokens[symbol];
    const claims = { symbol, name, decimals: decimalsOn(network, symbol) };
    return key && name !== null ? [{ ...key, claims }] : [];
  };
  const all = routes.flatMap(({ source, dest, tokens: transferred, feeTokens: [link, wrapped] }) => [
    ...transferred.flatMap(({ name, sourceTokenAddress, destTokenAddress }) => [
      ...claimed(source, sourceTokenAddress, name),
      ...claimed(dest, destTokenAddress, name),
    ]),
    ...claimed(source, link, 'LINK'),
    ...claimed(source, wrapped, 'WNAT'),
  ]);
  return [...new Map(all.map((token) => [tokenKey(token), token])).values()];
}

function decimalsOn({ family }: Network, name: TokenName): number {
  return tokens[name].decimals[family === 'SVM' ? 'SVM' : 'EVM'];
}

const EMPTY_DATA = '0x';
/** On Solana the recipient of tokens is in the extra arguments, and this replaces the program. */
const NO_PROGRAM = '1'.repeat(32);

export function createMessageWriter(derive: Derivation) {
  const pickPerson = ({ source, dest, profile }: Route, randomness: Randomness): string => {
    const touchesSvm = source.family === 'SVM' || dest.family === 'SVM';
    const people = touchesSvm ? population.peopleOnSvm : population.people;
    // The regular users of a lane begin at any number that differs between lanes.
    const index = randomness.chance(0.5)
      ? 7 * profile.share + randomness.rank(population.regularsPerLane)
      : randomness.rank(people);
    return `person ${index % people}`;
  };

  const drawPayload = (randomness: Randomness): string => {
    if (randomness.chance(0.25)) return `0x${word(randomness.integer(0, 1_000_000))}`;
    const text = Buffer.from(randomness.pick(phrases), 'utf8').toString('hex');
    return `0x${encodedBytes(text)}`;
  };

  const drawTokens = (
    route: Route,
    count: number,
    [least, most]: readonly [number, number],
    randomness: Randomness,
  ): TokenAmount[] => {
    const start = randomness.rank(route.tokens.length);
    // Consecutive tokens from a random one on: no message transfers the same token twice.
    const chosen = [...route.tokens.slice(start), ...route.tokens.slice(0, start)].slice(0, count);
    return chosen.map(({ name, ...token }) => {
      const decimals = decimalsOn(route.source, name);
      // People type amounts with few digits; the rest are zeros.
      const thousandths = Math.ceil(randomness.acrossMagnitudes(least, most) * 1_000);
      return {
        ...token,
        amount: (BigInt(thousandths) * 10n ** BigInt(decimals - 3)).toString(),
        // USDC is burnt and minted by its issuer, with a nonce and a domain; other pools send their decimals.
        extraData:
          name === 'USDC'
            ? `0x${word(randomness.integer(100_000, 900_000))}${word(randomness.integer(0, 7))}`
            : `0x${word(decimals)}`,
      };
    });
  };

  const extraArgsOf = (
    { dest }: Route,
    data: string,
    hasTokens: boolean,
    receiver: string,
    inOrder: boolean,
    randomness: Randomness,
  ): SentMessage['extraArgs'] => {
    const hasData = data !== EMPTY_DATA;
    if (dest.family !== 'SVM') {
      const gasLimit = hasData ? randomness.pick(['200000', '200000', '300000', '500000']) : '0';
      return { gasLimit, allowOutOfOrderExecution: !inOrder };
    }
    const accounts = Array.from({ length: hasData ? randomness.integer(1, 4) : 0 }, (_, index) =>
      derive.address('SVM', `${receiver} account ${index}`),
    );
    return {
      computeUnits: hasData ? randomness.pick([80_000, 120_000, 200_000]) : 0,
      accountIsWritableBitmap: String(randomness.integer(0, 2 ** accounts.length - 1)),
      allowOutOfOrderExecution: true,
      tokenReceiver: hasTokens ? derive.address('SVM', receiver) : NO_PROGRAM,
      accounts,
    };
  };

  const feesOf = (
    { source, feeTokens, verifiers, executor, router }: Route,
    tokenAmounts: readonly TokenAmount[],
    randomness: Randomness,
  ): Fees => {
    const inLink = randomness.chance(0.55);
    const tokenAddress = feeTokens[inLink ? 0 : 1];
    const unit = source.family === 'SVM' ? 1_000 : 1_000_000_000_000;
    const drawAmount = (leastMillionths: number, mostMillionths: number) => {
      const millionths = randomness.integer(leastMillionths, mostMillionths) * (inLink ? 20 : 1);
      return BigInt(millionths) * BigInt(unit) + BigInt(randomness.integer(0, unit - 1));
    };
    if (verifiers === null)
      return { fixedFeesDetails: { tokenAddress, totalAmount: drawAmount(1_500, 30_000).toString() } };
    const charge = (
      feeType: 'VERIFIER' | 'TOKEN_POOL' | 'EXECUTOR' | 'NETWORK',
      contractAddress: string,
      ...millionths: [number, number]
    ) => ({ contractAddress, feeType, amount: drawAmount(...millionths) });
    const charges = [
      ...verifiers.items.map(({ sourceAddress }) => charge('VERIFIER', sourceAddress, 200, 3_000)),
      ...tokenAmounts.map(({ sourcePoolAddress }) => charge('TOKEN_POOL', sourcePoolAddress, 0, 400)),
      charge('EXECUTOR', executor, 500, 12_000),
      charge('NETWORK', router, 400, 2_000),
    ];
    const totalAmount = charges.reduce((total, { amount }) => total + amount, 0n).toString();
    const items = charges.map((item) => ({ ...item, amount: item.amount.toString() }));
    return { fixedFeesDetails: { tokenAddress, totalAmount, items } };
  };

  /** A transaction and its sender. It reserves `count` sequence numbers from `firstNumber` on. */
  const draft = (route: Route, firstNumber: number) => {
    const randomness = new Randomness(route.transactionSeed, firstNumber);
    const address = (name: string) => derive.address(route.source.family, name);
    const kind = randomness.pickWeighted(trafficMixes[route.profile.trafficMix].senders);
    const person = pickPerson(route, randomness);
    const app = `app ${population.apps[randomness.rank(population.apps.length)]}`;
    const treasury = `treasury ${randomness.pick(population.treasuries)}`;
    const signer = `${treasury} signer ${randomness.integer(1, population.signersPerTreasury)}`;
    const name = kind === 'app' ? app : kind === 'treasury' ? treasury : person;
    return {
      route,
      firstNumber,
      count: randomness.chance(bursts.batchChance) ? randomness.pick(bursts.batchSizes) : 1,
      kind,
      /** The person, app or treasury that sends. */
      name,
      origin: address(kind === 'treasury' ? signer : person),
      sender: address(name),
      transactionHash: route.sendTransactions(firstNumber),
      firstLogIndex: randomness.integer(1, 60),
    };
  };

  return {
    draft,
    /** @param context what depends on the time of sending */
    write(
      transaction: ReturnType<typeof draft>,
      index: number,
      context: Pick<SentMessage, 'sendTimestamp' | 'sendBlockNumber'> & {
        readonly nextNonce: (sender: string) => number;
      },
    ) {
      const { route, kind, name, sender } = transaction;
      const { source, dest, profile, verifiers } = route;
      const number = transaction.firstNumber + index;
      const digest = derive.digest(`message ${route.key} ${number}`);
      const randomness = new Randomness(digest);
      const { amounts, chances } = senderKinds[kind];
      const usesVerifiers = verifiers !== null;
      // From 2.0 on a message carries one token at most, and nothing orders messages.
      const most = !usesVerifiers && randomness.chance(chances.second) ? 2 : 1;
      const tokenAmounts = drawTokens(
        route,
        randomness.chance(chances.token) ? most : 0,
        amounts,
        randomness,
      );
      const hasTokens = tokenAmounts.length > 0;
      const hasData = randomness.chance(hasTokens ? chances.data : 0.9);
      const data = hasData ? drawPayload(randomness) : EMPTY_DATA;
      const inOrder = !usesVerifiers && dest.family !== 'SVM' && randomness.chance(chances.order);
      const isToAnybody = kind === 'account' && randomness.chance(0.4);
      const receiver = kind === 'app' ? `${name} peer` : isToAnybody ? pickPerson(route, randomness) : name;
      const onlyTokensToSvm = dest.family === 'SVM' && hasTokens && !hasData;
      const message: SentMessage = {
        messageId: `0x${digest.toString('hex')}`,
        origin: transaction.origin,
        sender,
        receiver: onlyTokensToSvm ? NO_PROGRAM : derive.address(dest.family, receiver),
        sourceNetworkInfo: networkInfo(source),
        destNetworkInfo: networkInfo(dest),
        sendTransactionHash: transaction.transactionHash,
        sendTimestamp: context.sendTimestamp,
        nonce: usesVerifiers ? null : inOrder ? String(context.nextNonce(sender)) : '0',
        sequenceNumber: String(number),
        onramp: route.lane.onramp,
        routerAddress: route.router,
        sendBlockNumber: context.sendBlockNumber,
        // Each message of a transaction emits several logs: the fee, the tokens, its own event.
        sendLogIndex: transaction.firstLogIndex + index * 6 + tokenAmounts.length,
        data,
        tokenAmounts,
        extraArgs: extraArgsOf(route, data, hasTokens, receiver, inOrder, randomness),
        version: profile.version,
        finality: usesVerifiers && randomness.chance(0.25) ? randomness.pick(route.customDepths) : 0,
        verifiers,
        executor: usesVerifiers ? { address: route.executor } : null,
        fees: feesOf(route, tokenAmounts, randomness),
      };
      // The outcome of the message is drawn from the rest of its random numbers.
      return { message, randomness };
    },
  };
}

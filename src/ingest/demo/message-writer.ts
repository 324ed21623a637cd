/**
 * Generates simulated messages and their senders from a lane and a sequence number.
 *
 * Addresses, hashes and numbers are in the canonical notation of the record. Identifiers derive from seed, lane and number
 * alone, so they do not depend on the time.
 */
import type { Lane, SentMessage } from '../../domain/facts.ts';
import type { Fees, NetworkInfo, TokenAmount, Verifiers } from '../../domain/message.ts';
import { findNetwork, type Network } from '../../domain/networks/networks.ts';
import { encodedBytes, word } from './failures.ts';
import {
  bursts,
  decimalsOn,
  type LaneProfile,
  networkProfiles,
  phrases,
  population,
  type SenderKind,
  tokens,
  trafficMixes,
  verifierSets,
} from './parameters.ts';
import { type Derivation, Randomness } from './randomness.ts';

/** A lane with its addresses. */
export type Route = Readonly<ReturnType<typeof createRoute>>;

export function createRoute(profile: LaneProfile, derive: Derivation) {
  const contract = (network: Network, name: string): string =>
    derive.address(network.family, `${name} on ${network.name}`);
  /** Up to 1.5 each lane has its own on-ramp; since then a network has one for all lanes. */
  const onrampOf = (source: Network, dest: Network): string => {
    // On Solana one program is both router and on-ramp.
    if (source.family === 'SVM') return contract(source, 'router');
    const { version } = profile;
    return contract(source, version === '1.5.0' ? `on-ramp to ${dest.name}` : `on-ramp ${version}`);
  };
  const pendingVerifiers = (source: Network, dest: Network): Verifiers | null => {
    if (!(profile.assurance in verifierSets)) return null;
    const set = verifierSets[profile.assurance as keyof typeof verifierSets];
    const pending = (isRequired: boolean) => (name: string) => ({
      sourceAddress: contract(source, `verifier ${name}`),
      destAddress: contract(dest, `verifier ${name}`),
      metadata: { name },
      isRequired,
      status: 'PENDING' as const,
      verification: null,
    });
    return {
      items: [...set.required.map(pending(true)), ...set.optional.map(pending(false))],
      optionalThreshold: set.optionalThreshold,
    };
  };

  const source = knownNetwork(networkProfiles[profile.source].name);
  const dest = knownNetwork(networkProfiles[profile.dest].name);
  const key = `${source.name} to ${dest.name}`;
  const lane: Lane = {
    sourceChainSelector: source.selector,
    destChainSelector: dest.selector,
    onramp: onrampOf(source, dest),
  };
  return {
    /** Identifies the lane in derived values. */
    key,
    /** Seed of the transactions; messages have their own. */
    transactionSeed: derive.digest(`envelopes ${key}`),
    sendTransactions: derive.transactionHashes(source.family, `send ${key}`),
    profile,
    source,
    dest,
    lane,
    sourceNetworkInfo: networkInfo(source),
    destNetworkInfo: networkInfo(dest),
    router: contract(source, 'router'),
    executor: contract(source, 'executor'),
    /** LINK first, then the wrapped native token. */
    feeTokens: [contract(source, 'token LINK'), contract(source, 'wrapped native token')] as const,
    tokens: trafficMixes[profile.trafficMix].tokens.map((name) => ({
      name,
      decimals: decimalsOn(source, name),
      sourceTokenAddress: contract(source, `token ${name}`),
      destTokenAddress: contract(dest, `token ${name}`),
      sourcePoolAddress: contract(source, `pool ${name}`),
      destGasAmount: tokens[name].destGas,
    })),
    /** Their state when a message is sent; null on lanes that commit instead. */
    verifiers: pendingVerifiers(source, dest),
  };
}

/** A transaction and its sender. */
export interface TransactionDraft {
  readonly route: Route;
  readonly firstNumber: number;
  readonly count: number;
  readonly kind: SenderKind | 'heartbeat';
  /** The person, app, treasury or machine that sends. */
  readonly name: string;
  readonly origin: string;
  readonly sender: string;
  readonly transactionHash: string;
  readonly firstLogIndex: number;
}

/** The content of a message. */
interface MessageContent {
  readonly tokenAmounts: TokenAmount[];
  readonly data: string;
  /** Derivation name of the recipient. */
  readonly receiver: string;
  readonly inOrder: boolean;
}

const EMPTY_DATA = '0x';
/** On Solana the recipient of tokens is in the extra arguments, and this replaces the program. */
const NO_PROGRAM = '1'.repeat(32);

export function createMessageWriter(derive: Derivation) {
  /** Drafts a transaction of a user. It reserves `count` sequence numbers from `firstNumber` on. */
  const draftTransaction = (route: Route, firstNumber: number): TransactionDraft => {
    const randomness = new Randomness(route.transactionSeed, firstNumber);
    const kind = randomness.pickWeighted(trafficMixes[route.profile.trafficMix].senders);
    const person = pickPerson(route, randomness);
    const parties = partiesOf(route, kind, person, randomness);
    const count = randomness.chance(bursts.batchChance) ? randomness.pick(bursts.batchSizes) : 1;
    return draftOf(route, firstNumber, { ...parties, kind, count }, randomness);
  };

  /** Drafts a transaction of a machine that sends periodically. */
  const draftPeriodic = (route: Route, firstNumber: number, machine: string): TransactionDraft => {
    const randomness = new Randomness(route.transactionSeed, firstNumber);
    const account = derive.address(route.source.family, machine);
    const parties = { name: machine, origin: account, sender: account };
    return draftOf(route, firstNumber, { ...parties, kind: 'heartbeat', count: 1 }, randomness);
  };

  /** @param context what depends on the time of sending */
  const write = (
    draft: TransactionDraft,
    index: number,
    context: Pick<SentMessage, 'sendTimestamp' | 'sendBlockNumber'> & {
      readonly nextNonce: (sender: string) => number;
    },
  ) => {
    const { route } = draft;
    const number = draft.firstNumber + index;
    const digest = derive.digest(`message ${route.key} ${number}`);
    const randomness = new Randomness(digest);
    const content = contentOf(draft, number, randomness);
    const { tokenAmounts, data } = content;
    const usesVerifiers = route.verifiers !== null;
    const onlyTokensToSvm = route.dest.family === 'SVM' && tokenAmounts.length > 0 && data === EMPTY_DATA;
    const message: SentMessage = {
      messageId: `0x${digest.toString('hex')}`,
      origin: draft.origin,
      sender: draft.sender,
      receiver: onlyTokensToSvm ? NO_PROGRAM : derive.address(route.dest.family, content.receiver),
      sourceNetworkInfo: route.sourceNetworkInfo,
      destNetworkInfo: route.destNetworkInfo,
      sendTransactionHash: draft.transactionHash,
      sendTimestamp: context.sendTimestamp,
      nonce: usesVerifiers ? null : content.inOrder ? String(context.nextNonce(draft.sender)) : '0',
      sequenceNumber: String(number),
      onramp: route.lane.onramp,
      routerAddress: route.router,
      sendBlockNumber: context.sendBlockNumber,
      // Each message of a transaction emits several logs: the fee, the tokens, its own event.
      sendLogIndex: draft.firstLogIndex + index * 6 + tokenAmounts.length,
      data,
      tokenAmounts,
      extraArgs: extraArgsOf(route, content, randomness),
      version: route.profile.version,
      finality: usesVerifiers && randomness.chance(0.25) ? customDepth(route, randomness) : 0,
      verifiers: route.verifiers,
      executor: usesVerifiers ? { address: route.executor } : null,
      fees: feesOf(route, tokenAmounts, randomness),
    };
    // The outcome of the message is drawn from the rest of its random numbers.
    return { message, randomness };
  };

  // ---- Senders

  const pickPerson = (route: Route, randomness: Randomness): string => {
    const people = touchesSvm(route) ? population.peopleOnSvm : population.people;
    // Any number that differs between lanes.
    const start = route.profile.peakHour * 7 + route.profile.share;
    const index = randomness.chance(0.5)
      ? start + randomness.rank(population.regularsPerLane)
      : randomness.rank(people);
    return `person ${index % people}`;
  };

  const partiesOf = (
    route: Route,
    kind: SenderKind,
    person: string,
    randomness: Randomness,
  ): Pick<TransactionDraft, 'name' | 'origin' | 'sender'> => {
    const address = (name: string) => derive.address(route.source.family, name);
    switch (kind) {
      case 'bridge':
      case 'account':
        return { name: person, origin: address(person), sender: address(person) };
      case 'app': {
        const app = `app ${population.apps[randomness.rank(population.apps.length)]}`;
        return { name: app, origin: address(person), sender: address(app) };
      }
      case 'treasury': {
        const treasury = `treasury ${randomness.pick(population.treasuries)}`;
        const signer = `${treasury} signer ${randomness.integer(1, population.signersPerTreasury)}`;
        return { name: treasury, origin: address(signer), sender: address(treasury) };
      }
    }
  };

  const draftOf = (
    route: Route,
    firstNumber: number,
    parties: Pick<TransactionDraft, 'kind' | 'name' | 'origin' | 'sender' | 'count'>,
    randomness: Randomness,
  ): TransactionDraft => ({
    route,
    firstNumber,
    ...parties,
    transactionHash: route.sendTransactions(firstNumber),
    firstLogIndex: randomness.integer(1, 60),
  });

  // ---- Content

  const contentOf = (draft: TransactionDraft, number: number, randomness: Randomness): MessageContent => {
    const { route, kind, name } = draft;
    const { version } = route.profile;
    // From 2.0 on a message carries one token at most.
    const severalTokens = (chance: number) => (version !== '2.0.0' && randomness.chance(chance) ? 2 : 1);
    const inOrder = (chance: number) =>
      version !== '2.0.0' && route.dest.family !== 'SVM' && randomness.chance(chance);

    const tokens = (count: number, ...range: [number, number]) => drawTokens(route, count, range, randomness);
    switch (kind) {
      case 'heartbeat': {
        const data = `0x${word(number)}`;
        return { tokenAmounts: [], data, receiver: `${name} listener`, inOrder: inOrder(1) };
      }
      case 'bridge': {
        const tokenAmounts = tokens(severalTokens(0.05), 0.5, 400);
        return { tokenAmounts, data: EMPTY_DATA, receiver: name, inOrder: inOrder(0.1) };
      }
      case 'app': {
        const tokenAmounts = tokens(randomness.chance(0.25) ? 1 : 0, 0.01, 20);
        const data = drawPayload(randomness);
        return { tokenAmounts, data, receiver: `${name} peer`, inOrder: inOrder(0.4) };
      }
      case 'treasury': {
        const tokenAmounts = tokens(severalTokens(0.4), 5_000, 250_000);
        const data = randomness.chance(0.2) ? abiString(`rebalance ${number}`) : EMPTY_DATA;
        return { tokenAmounts, data, receiver: name, inOrder: inOrder(0.9) };
      }
      case 'account': {
        const count = randomness.pick([0, 0, 1, 1, 1, severalTokens(0.5)]);
        const tokenAmounts = tokens(count, 0.001, 10);
        const data = randomness.chance(count === 0 ? 0.9 : 0.25) ? drawPayload(randomness) : EMPTY_DATA;
        const receiver = randomness.chance(0.6) ? name : pickPerson(route, randomness);
        return { tokenAmounts, data, receiver, inOrder: inOrder(0.35) };
      }
    }
  };

  const drawPayload = (randomness: Randomness): string => {
    switch (randomness.integer(0, 3)) {
      case 0:
        return `0x${word(randomness.integer(0, 1_000_000))}`;
      case 1: {
        const account = derive.address('EVM', `person ${randomness.rank(population.people)}`);
        return `0x${account.slice(2).toLowerCase().padStart(64, '0')}${word(randomness.integer(1, 10_000))}`;
      }
      default:
        return abiString(randomness.pick(phrases));
    }
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
    return chosen.map((token) => {
      const { name, decimals, destGasAmount, ...addresses } = token;
      // People type amounts with few digits; the rest are zeros.
      const thousandths = Math.ceil(randomness.acrossMagnitudes(least, most) * 1_000);
      return {
        ...addresses,
        amount: (BigInt(thousandths) * 10n ** BigInt(decimals - 3)).toString(),
        // USDC is burnt and minted by its issuer, with a nonce and a domain; other pools send their decimals.
        extraData:
          name === 'USDC'
            ? `0x${word(randomness.integer(100_000, 900_000))}${word(randomness.integer(0, 7))}`
            : `0x${word(decimals)}`,
        destGasAmount,
      };
    });
  };

  const extraArgsOf = (
    route: Route,
    content: MessageContent,
    randomness: Randomness,
  ): SentMessage['extraArgs'] => {
    const { data, tokenAmounts, receiver } = content;
    if (route.dest.family !== 'SVM') {
      return {
        gasLimit: data === EMPTY_DATA ? '0' : randomness.pick(['200000', '200000', '300000', '500000']),
        allowOutOfOrderExecution: !content.inOrder,
      };
    }
    const accounts = Array.from({ length: data === EMPTY_DATA ? 0 : randomness.integer(1, 4) }, (_, i) =>
      derive.address('SVM', `${receiver} account ${i}`),
    );
    return {
      computeUnits: data === EMPTY_DATA ? 0 : randomness.pick([80_000, 120_000, 200_000]),
      accountIsWritableBitmap: String(randomness.integer(0, 2 ** accounts.length - 1)),
      allowOutOfOrderExecution: true,
      tokenReceiver: tokenAmounts.length > 0 ? derive.address('SVM', receiver) : NO_PROGRAM,
      accounts,
    };
  };

  const feesOf = (route: Route, tokenAmounts: readonly TokenAmount[], randomness: Randomness): Fees => {
    const { source } = route;
    const inLink = randomness.chance(0.55);
    const tokenAddress = route.feeTokens[inLink ? 0 : 1];
    const amount = (leastMillionths: number, mostMillionths: number) => {
      const millionths = randomness.integer(leastMillionths, mostMillionths) * (inLink ? 20 : 1);
      const rest =
        source.family === 'SVM' ? randomness.integer(0, 999) : randomness.integer(0, 999_999_999_999);
      const unit = source.family === 'SVM' ? 1_000n : 1_000_000_000_000n;
      return BigInt(millionths) * unit + BigInt(rest);
    };

    if (route.verifiers === null) {
      return { fixedFeesDetails: { tokenAddress, totalAmount: amount(1_500, 30_000).toString() } };
    }
    const charge = (
      feeType: 'VERIFIER' | 'TOKEN_POOL' | 'EXECUTOR' | 'NETWORK',
      contractAddress: string,
      ...millionths: [number, number]
    ) => ({ contractAddress, feeType, amount: amount(...millionths) });
    const charges = [
      ...route.verifiers.items.map(({ sourceAddress }) => charge('VERIFIER', sourceAddress, 200, 3_000)),
      ...tokenAmounts.map(({ sourcePoolAddress }) => charge('TOKEN_POOL', sourcePoolAddress, 0, 400)),
      charge('EXECUTOR', route.executor, 500, 12_000),
      charge('NETWORK', route.router, 400, 2_000),
    ];
    return {
      fixedFeesDetails: {
        tokenAddress,
        totalAmount: charges.reduce((total, charge) => total + charge.amount, 0n).toString(),
        items: charges.map((charge) => ({ ...charge, amount: charge.amount.toString() })),
      },
    };
  };

  /** A custom number of confirmations is chosen to be faster than finality. */
  const customDepth = (route: Route, randomness: Randomness): number => {
    const { blockMs } = networkProfiles[route.profile.source];
    return blockMs >= 5_000 ? 1 : randomness.pick([1, 2, 3]);
  };

  return { draftTransaction, draftPeriodic, write };
}

export function knownNetwork(name: string): Network {
  const network = findNetwork(name);
  if (!network) throw new Error(`The simulation uses an unknown network ${name}.`);
  return network;
}

function networkInfo(network: Network): NetworkInfo {
  const { name, selector, chainId, family, displayName } = network;
  return { name, chainSelector: selector, chainId, chainFamily: family, displayName };
}

function touchesSvm(route: Route): boolean {
  return route.source.family === 'SVM' || route.dest.family === 'SVM';
}

function abiString(text: string): string {
  return `0x${encodedBytes(Buffer.from(text, 'utf8').toString('hex'))}`;
}

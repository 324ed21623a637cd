/**
 * What messages say, and who sends them: from a lane and a number to a message.
 *
 * All of it is canonical as it leaves here: addresses, hashes and numbers are spelled as the record spells
 * them. Identifiers follow from seed, lane and number alone, so that they do not move with the clock.
 */
import type { Lane, SentMessage } from '../../domain/facts.ts';
import type { Fees, NetworkInfo, TokenAmount, Verifiers } from '../../domain/message.ts';
import { findNetwork, type Network } from '../../domain/networks.ts';
import { type Derivation, type HashByNumber, Randomness } from './randomness.ts';
import {
  cast,
  company,
  type LaneHabits,
  networkHabits,
  phrases,
  type SenderKind,
  type TokenName,
  tokens,
  trades,
  verifierSets,
} from './world.ts';

/** A lane with its addresses. */
export interface Route {
  /** Names the lane in everything that is derived for it. */
  readonly key: string;
  /** Of who sends what; a message's own stream has another. */
  readonly envelopeSeed: Buffer;
  readonly sendTransactions: HashByNumber;
  readonly habits: LaneHabits;
  readonly source: Network;
  readonly dest: Network;
  readonly lane: Lane;
  readonly sourceNetworkInfo: NetworkInfo;
  readonly destNetworkInfo: NetworkInfo;
  readonly router: string;
  readonly executor: string;
  /** LINK first, then the wrapped native token. */
  readonly feeTokens: readonly [string, string];
  readonly tokens: readonly TokenOnRoute[];
  /** As they stand when a message is sent; null on lanes that commit instead. */
  readonly verifiers: Verifiers | null;
}

interface TokenOnRoute
  extends Pick<
    TokenAmount,
    'sourceTokenAddress' | 'destTokenAddress' | 'sourcePoolAddress' | 'destGasAmount'
  > {
  readonly name: TokenName;
  readonly decimals: number;
}

/** One transaction and who stands behind it. */
export interface Envelope {
  readonly route: Route;
  readonly firstNumber: number;
  readonly count: number;
  readonly kind: SenderKind | 'heartbeat';
  /** The person, app, treasury or machine that messages of this kind are about. */
  readonly name: string;
  readonly origin: string;
  readonly sender: string;
  readonly transactionHash: string;
  readonly firstLogIndex: number;
}

/** What only the moment of sending decides. */
export interface Posting {
  readonly sendTimestamp: string;
  readonly sendBlockNumber: number;
  readonly nextNonce: (sender: string) => number;
}

export interface Written {
  readonly message: SentMessage;
  /** For what will become of the message. */
  readonly randomness: Randomness;
}

/** What one kind of sender puts into a message. */
interface Parcel {
  readonly tokenAmounts: TokenAmount[];
  readonly data: string;
  /** Derivation name of the recipient. */
  readonly receiver: string;
  readonly inOrder: boolean;
}

const emptyData = '0x';
/** On Solana the recipient of tokens stands in the extra arguments, and this in place of a program. */
const noProgram = '1'.repeat(32);

export class MessageWriter {
  private readonly derive: Derivation;

  constructor(derive: Derivation) {
    this.derive = derive;
  }

  route(habits: LaneHabits): Route {
    const source = knownNetwork(networkHabits(habits.source).name);
    const dest = knownNetwork(networkHabits(habits.dest).name);
    const key = `${source.name} to ${dest.name}`;
    return {
      key,
      envelopeSeed: this.derive.digest(`envelopes ${key}`),
      sendTransactions: this.derive.transactionHashes(source.family, `send ${key}`),
      habits,
      source,
      dest,
      lane: {
        sourceChainSelector: source.selector,
        destChainSelector: dest.selector,
        onramp: this.onramp(source, dest, habits.version),
      },
      sourceNetworkInfo: networkInfo(source),
      destNetworkInfo: networkInfo(dest),
      router: this.contract(source, 'router'),
      executor: this.contract(source, 'executor'),
      feeTokens: [this.contract(source, 'token LINK'), this.contract(source, 'wrapped native token')],
      tokens: trades[habits.trade].tokens.map((name) => ({
        name,
        decimals: source.family === 'SVM' ? tokens[name].SVM : tokens[name].EVM,
        sourceTokenAddress: this.contract(source, `token ${name}`),
        destTokenAddress: this.contract(dest, `token ${name}`),
        sourcePoolAddress: this.contract(source, `pool ${name}`),
        destGasAmount: tokens[name].destGas,
      })),
      verifiers: this.pendingVerifiers(habits, source, dest),
    };
  }

  /** Opens a transaction of the crowd. It reserves `count` numbers from `firstNumber` on. */
  envelope(route: Route, firstNumber: number): Envelope {
    const randomness = new Randomness(route.envelopeSeed, firstNumber);
    const kind = randomness.pickWeighted(trades[route.habits.trade].senders);
    const person = this.person(route, randomness);
    const parties = this.parties(route, kind, person, randomness);
    const count = randomness.chance(company.batchChance) ? randomness.pick(company.batchSizes) : 1;
    return this.seal(route, firstNumber, { ...parties, kind, count }, randomness);
  }

  heartbeatEnvelope(route: Route, firstNumber: number, machine: string): Envelope {
    const randomness = new Randomness(route.envelopeSeed, firstNumber);
    const account = this.derive.address(route.source.family, machine);
    const parties = { name: machine, origin: account, sender: account };
    return this.seal(route, firstNumber, { ...parties, kind: 'heartbeat', count: 1 }, randomness);
  }

  write(envelope: Envelope, index: number, posting: Posting): Written {
    const { route } = envelope;
    const number = envelope.firstNumber + index;
    const digest = this.derive.digest(`message ${route.key} ${number}`);
    const randomness = new Randomness(digest);
    const parcel = this.parcel(envelope, number, randomness);
    const { tokenAmounts, data } = parcel;
    const usesVerifiers = route.verifiers !== null;
    const onlyTokensToSvm = route.dest.family === 'SVM' && tokenAmounts.length > 0 && data === emptyData;
    return {
      message: {
        messageId: `0x${digest.toString('hex')}`,
        origin: envelope.origin,
        sender: envelope.sender,
        receiver: onlyTokensToSvm ? noProgram : this.derive.address(route.dest.family, parcel.receiver),
        sourceNetworkInfo: route.sourceNetworkInfo,
        destNetworkInfo: route.destNetworkInfo,
        sendTransactionHash: envelope.transactionHash,
        sendTimestamp: posting.sendTimestamp,
        nonce: usesVerifiers ? null : parcel.inOrder ? String(posting.nextNonce(envelope.sender)) : '0',
        sequenceNumber: String(number),
        onramp: route.lane.onramp,
        routerAddress: route.router,
        sendBlockNumber: posting.sendBlockNumber,
        // Each message of a transaction leaves a handful of logs: the fee, the tokens, its own event.
        sendLogIndex: envelope.firstLogIndex + index * 6 + tokenAmounts.length,
        data,
        tokenAmounts,
        extraArgs: this.extraArgs(route, parcel, randomness),
        version: route.habits.version,
        finality: usesVerifiers && randomness.chance(0.25) ? this.customDepth(route, randomness) : 0,
        verifiers: route.verifiers,
        executor: usesVerifiers ? { address: route.executor } : null,
        fees: this.fees(route, tokenAmounts, randomness),
      },
      randomness,
    };
  }

  // ---- Who

  private person(route: Route, randomness: Randomness): string {
    const people = touchesSvm(route) ? cast.peopleOnSvm : cast.people;
    // Any number will do, as long as each lane has its own.
    const start = route.habits.peakHour * 7 + route.habits.share;
    const index = randomness.chance(0.5)
      ? start + randomness.rank(cast.neighbourhood)
      : randomness.rank(people);
    return `person ${index % people}`;
  }

  private parties(
    route: Route,
    kind: SenderKind,
    person: string,
    randomness: Randomness,
  ): Pick<Envelope, 'name' | 'origin' | 'sender'> {
    const address = (name: string) => this.derive.address(route.source.family, name);
    switch (kind) {
      case 'bridge':
      case 'account':
        return { name: person, origin: address(person), sender: address(person) };
      case 'app': {
        const app = `app ${cast.apps[randomness.rank(cast.apps.length)]}`;
        return { name: app, origin: address(person), sender: address(app) };
      }
      case 'treasury': {
        const treasury = `treasury ${randomness.pick(cast.treasuries)}`;
        const signer = `${treasury} signer ${randomness.integer(1, cast.signersPerTreasury)}`;
        return { name: treasury, origin: address(signer), sender: address(treasury) };
      }
    }
  }

  private seal(
    route: Route,
    firstNumber: number,
    parties: Pick<Envelope, 'kind' | 'name' | 'origin' | 'sender' | 'count'>,
    randomness: Randomness,
  ): Envelope {
    return {
      route,
      firstNumber,
      ...parties,
      transactionHash: route.sendTransactions(firstNumber),
      firstLogIndex: randomness.integer(1, 60),
    };
  }

  // ---- What

  private parcel(envelope: Envelope, number: number, randomness: Randomness): Parcel {
    const { route, kind, name } = envelope;
    const { version } = route.habits;
    // From 2.0 on a message carries one token at most.
    const severalTokens = (chance: number) => (version !== '2.0.0' && randomness.chance(chance) ? 2 : 1);
    const inOrder = (chance: number) =>
      version !== '2.0.0' && route.dest.family !== 'SVM' && randomness.chance(chance);

    switch (kind) {
      case 'heartbeat':
        return {
          tokenAmounts: [],
          data: `0x${word(number)}`,
          receiver: `${name} listener`,
          inOrder: inOrder(1),
        };
      case 'bridge':
        return {
          tokenAmounts: this.tokenAmounts(route, severalTokens(0.05), [0.5, 400], randomness),
          data: emptyData,
          receiver: name,
          inOrder: inOrder(0.1),
        };
      case 'app':
        return {
          tokenAmounts: this.tokenAmounts(route, randomness.chance(0.25) ? 1 : 0, [0.01, 20], randomness),
          data: this.payload(randomness),
          receiver: `${name} peer`,
          inOrder: inOrder(0.4),
        };
      case 'treasury':
        return {
          tokenAmounts: this.tokenAmounts(route, severalTokens(0.4), [5_000, 250_000], randomness),
          data: randomness.chance(0.2) ? abiString(`rebalance ${number}`) : emptyData,
          receiver: name,
          inOrder: inOrder(0.9),
        };
      case 'account': {
        const count = randomness.pick([0, 0, 1, 1, 1, severalTokens(0.5)]);
        return {
          tokenAmounts: this.tokenAmounts(route, count, [0.001, 10], randomness),
          data: randomness.chance(count === 0 ? 0.9 : 0.25) ? this.payload(randomness) : emptyData,
          receiver: randomness.chance(0.6) ? name : this.person(route, randomness),
          inOrder: inOrder(0.35),
        };
      }
    }
  }

  private payload(randomness: Randomness): string {
    switch (randomness.integer(0, 3)) {
      case 0:
        return `0x${word(randomness.integer(0, 1_000_000))}`;
      case 1: {
        const account = this.derive.address('EVM', `person ${randomness.rank(cast.people)}`);
        return `0x${account.slice(2).toLowerCase().padStart(64, '0')}${word(randomness.integer(1, 10_000))}`;
      }
      default:
        return abiString(randomness.pick(phrases));
    }
  }

  private tokenAmounts(
    route: Route,
    count: number,
    [least, most]: readonly [number, number],
    randomness: Randomness,
  ): TokenAmount[] {
    const start = randomness.rank(route.tokens.length);
    // The usual tokens in turn, from a random one on: no message carries the same token twice.
    const chosen = [...route.tokens.slice(start), ...route.tokens.slice(0, start)].slice(0, count);
    return chosen.map((token) => {
      const { name, decimals } = token;
      // People type amounts with a few digits; what lies behind is zeros.
      const thousandths = Math.ceil(randomness.acrossMagnitudes(least, most) * 1_000);
      return {
        sourceTokenAddress: token.sourceTokenAddress,
        destTokenAddress: token.destTokenAddress,
        sourcePoolAddress: token.sourcePoolAddress,
        amount: (BigInt(thousandths) * 10n ** BigInt(decimals - 3)).toString(),
        // USDC is burnt and minted by its issuer, by a nonce and a domain; other pools tell their decimals.
        extraData:
          name === 'USDC'
            ? `0x${word(randomness.integer(100_000, 900_000))}${word(randomness.integer(0, 7))}`
            : `0x${word(decimals)}`,
        destGasAmount: token.destGasAmount,
      };
    });
  }

  private extraArgs(route: Route, parcel: Parcel, randomness: Randomness): SentMessage['extraArgs'] {
    const { data, tokenAmounts, receiver } = parcel;
    if (route.dest.family !== 'SVM') {
      return {
        gasLimit: data === emptyData ? '0' : randomness.pick(['200000', '200000', '300000', '500000']),
        allowOutOfOrderExecution: !parcel.inOrder,
      };
    }
    const accounts = Array.from({ length: data === emptyData ? 0 : randomness.integer(1, 4) }, (_, i) =>
      this.derive.address('SVM', `${receiver} account ${i}`),
    );
    return {
      computeUnits: data === emptyData ? 0 : randomness.pick([80_000, 120_000, 200_000]),
      accountIsWritableBitmap: String(randomness.integer(0, 2 ** accounts.length - 1)),
      allowOutOfOrderExecution: true,
      tokenReceiver: tokenAmounts.length > 0 ? this.derive.address('SVM', receiver) : noProgram,
      accounts,
    };
  }

  private fees(route: Route, tokenAmounts: readonly TokenAmount[], randomness: Randomness): Fees {
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
    const charges = [
      ...route.verifiers.items.map((verifier) => ({
        contractAddress: verifier.sourceAddress,
        feeType: 'VERIFIER' as const,
        amount: amount(200, 3_000),
      })),
      ...tokenAmounts.map((token) => ({
        contractAddress: token.sourcePoolAddress,
        feeType: 'TOKEN_POOL' as const,
        amount: amount(0, 400),
      })),
      {
        contractAddress: route.executor,
        feeType: 'EXECUTOR' as const,
        amount: amount(500, 12_000),
      },
      { contractAddress: route.router, feeType: 'NETWORK' as const, amount: amount(400, 2_000) },
    ];
    return {
      fixedFeesDetails: {
        tokenAddress,
        totalAmount: charges.reduce((total, charge) => total + charge.amount, 0n).toString(),
        items: charges.map((charge) => ({ ...charge, amount: charge.amount.toString() })),
      },
    };
  }

  /** Whoever asks for a depth of their own wants to be faster than finality. */
  private customDepth(route: Route, randomness: Randomness): number {
    const { blockMilliseconds } = networkHabits(route.habits.source);
    return blockMilliseconds >= 5_000 ? 1 : randomness.pick([1, 2, 3]);
  }

  // ---- Contracts

  private contract(network: Network, name: string): string {
    return this.derive.address(network.family, `${name} on ${network.name}`);
  }

  /** Up to 1.5 each lane has its own on-ramp; since then a network has one for all lanes. */
  private onramp(source: Network, dest: Network, version: string): string {
    // On Solana one program is both.
    if (source.family === 'SVM') return this.contract(source, 'router');
    return this.contract(source, version === '1.5.0' ? `on-ramp to ${dest.name}` : `on-ramp ${version}`);
  }

  private pendingVerifiers(habits: LaneHabits, source: Network, dest: Network): Verifiers | null {
    if (!(habits.assurance in verifierSets)) return null;
    const set = verifierSets[habits.assurance as keyof typeof verifierSets];
    const pending = (name: string, isRequired: boolean) => ({
      sourceAddress: this.contract(source, `verifier ${name}`),
      destAddress: this.contract(dest, `verifier ${name}`),
      metadata: { name },
      isRequired,
      status: 'PENDING' as const,
      verification: null,
    });
    return {
      items: [
        ...set.required.map((name) => pending(name, true)),
        ...set.optional.map((name) => pending(name, false)),
      ],
      optionalThreshold: set.optionalThreshold,
    };
  }
}

export function knownNetwork(name: string): Network {
  const network = findNetwork(name);
  if (!network) throw new Error(`The simulated world has a network ${name} that nobody else knows.`);
  return network;
}

function networkInfo(network: Network): NetworkInfo {
  const { name, selector, chainId, family, displayName } = network;
  return { name, chainSelector: selector, chainId, chainFamily: family, displayName };
}

function touchesSvm(route: Route): boolean {
  return route.source.family === 'SVM' || route.dest.family === 'SVM';
}

// ---- ABI encoding

function word(value: number): string {
  return value.toString(16).padStart(64, '0');
}

function abiString(text: string): string {
  const bytes = Buffer.from(text, 'utf8').toString('hex');
  const padded = bytes.padEnd(Math.ceil(bytes.length / 64) * 64, '0');
  return `0x${word(32)}${word(bytes.length / 2)}${padded}`;
}

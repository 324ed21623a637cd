/**
 * Which contracts are trusted.
 *
 * Anybody can deploy a contract that emits perfect copies of the protocol's events. Routers are trusted because the
 * operator configures them; a ramp because a router registered it; a commit store, RMN proxy and RMN because a trusted 1.5
 * off-ramp refers to them. The type and version of a registered contract, and its static configuration, are read once:
 * they never change.
 */
import { zeroAddress } from 'viem';
import type { Network } from '../../../domain/networks/networks.ts';
import type { ChainLog, ChainNode, Hex } from '../rpc/chain.ts';
import * as abi from './abi.ts';
import { type BatchedCalls, runBatched } from './batched-calls.ts';

export type ContractRole = 'router' | 'onRamp' | 'offRamp' | 'commitStore' | 'rmnProxy' | 'rmn';

/** The family of a lane; within one, events and views are the same. */
export type LaneVersion = '1.2.0' | '1.5.0' | '1.6.0' | '2.0.0';

interface Genuine {
  readonly address: Hex;
  /** In the contract's own words, such as `EVM2EVMOnRamp 1.5.0`. */
  readonly typeAndVersion: string;
  /** The genuine contract through which it is known; a router stands for itself. */
  readonly namedBy: Hex;
}

/** Lanes up to 1.5 have ramps of their own; from 1.6 on a chain's ramps serve all its lanes. */
export interface LaneOnRamp extends Genuine {
  readonly role: 'onRamp';
  readonly version: '1.2.0' | '1.5.0';
  readonly destChainSelector: string;
}

export interface LaneOffRamp extends Genuine {
  readonly role: 'offRamp';
  readonly version: '1.2.0' | '1.5.0';
  readonly sourceChainSelector: string;
  /** On the source chain. */
  readonly onRamp: Hex;
  readonly commitStore: Hex;
}

export interface CommonRamp extends Genuine {
  readonly role: 'onRamp' | 'offRamp';
  readonly version: '1.6.0' | '2.0.0';
}

export interface CommitStore extends Genuine {
  readonly role: 'commitStore';
  readonly version: '1.2.0' | '1.5.0';
  readonly sourceChainSelector: string;
  /** On the source chain. */
  readonly onRamp: Hex;
  /** The off-ramp that executes what is committed here. */
  readonly offRamp: Hex;
  readonly rmnProxy: Hex;
}

export interface OtherContract extends Genuine {
  readonly role: 'router' | 'rmnProxy' | 'rmn';
  readonly version: null;
}

/** A trusted contract, and what about it never changes. Plain JSON: it is stored. */
export type GenuineContract = LaneOnRamp | LaneOffRamp | CommonRamp | CommitStore | OtherContract;

/** A contract that a genuine one has named and that is yet to be identified. */
export interface Registration {
  readonly address: Hex;
  readonly role: ContractRole;
  /** Of the chain at the other end, for ramps. */
  readonly selector?: string;
  readonly namedBy: Hex;
}

const rampEvents = [
  { event: abi.onRampSet, role: 'onRamp' },
  { event: abi.offRampAdded, role: 'offRamp' },
  // An off-ramp that is removed was added before; if history begins later than that, this event is the only trace of it.
  { event: abi.offRampRemoved, role: 'offRamp' },
] as const;

export function registrationsIn(log: ChainLog, emitter: GenuineContract): readonly Registration[] {
  try {
    if (emitter.role === 'rmnProxy' && log.topics[0] === abi.armSet.topic) {
      const [, [arm]] = abi.readEvent(abi.armSet, log);
      return registration(arm, 'rmn', emitter.address);
    }
    const ramp = rampEvents.find(({ event }) => event.topic === log.topics[0]);
    if (emitter.role !== 'router' || !ramp) return [];
    const [[selector], [address]] = abi.readEvent(ramp.event, log);
    return registration(address, ramp.role, emitter.address, selector);
  } catch {
    // Only events of another contract that claims to be a router cannot be decoded: they name no contract.
    return [];
  }
}

/** None for the zero address, with which a router closes a lane. */
function registration(named: Hex, role: ContractRole, namedBy: Hex, selector?: bigint) {
  if (named === zeroAddress) return [];
  const address = abi.lowerCase(named);
  return [{ address, role, ...(selector !== undefined && { selector: selector.toString() }), namedBy }];
}

/**
 * The contracts that the routers name at present, by their views, so that the newest blocks can be read before history.
 *
 * A router lists its off-ramps, but gives an on-ramp only by its destination chain. Calls for all chains would be hundreds,
 * half a minute of what a public endpoint allows. Most lanes go both ways, so the chains of the off-ramps are asked for. An
 * on-ramp without such an off-ramp is found in the routers' history, which is read next; blocks that were read before are
 * then read again for it.
 */
export async function currentRegistrations(node: ChainNode, routers: readonly Hex[]) {
  const views = await node.calls(routers.map((router) => abi.callOf(abi.getOffRamps, router)));
  const inward = routers.flatMap((router, index) => {
    const [offRamps = []] = abi.answerOf(abi.getOffRamps, views[index]) ?? [];
    return offRamps.map(({ offRamp, sourceChainSelector }) => ({ router, offRamp, sourceChainSelector }));
  });
  const outward = routers.flatMap((router) => {
    const own = inward.filter((ramp) => ramp.router === router);
    const selectors = new Set(own.map(({ sourceChainSelector }) => sourceChainSelector));
    return [...selectors].map((selector) => ({ router, selector }));
  });
  const answers = await node.calls(
    outward.map(({ router, selector }) => abi.callOf(abi.getOnRamp, router, selector)),
  );
  return [
    ...inward.flatMap(({ router, offRamp, sourceChainSelector }) =>
      registration(offRamp, 'offRamp', abi.lowerCase(router), sourceChainSelector),
    ),
    ...outward.flatMap(({ router, selector }, index) => {
      const [onRamp = zeroAddress] = abi.answerOf(abi.getOnRamp, answers[index]) ?? [];
      return registration(onRamp, 'onRamp', abi.lowerCase(router), selector);
    }),
  ];
}

export interface RejectedRegistration {
  readonly registration: Registration;
  /** For people. */
  readonly reason: string;
  /** It did not answer at all: a node that is behind may not have it yet. */
  readonly isSilent: boolean;
}

export interface Identification {
  readonly contracts: readonly GenuineContract[];
  /** Contracts that are not what they should be. */
  readonly rejected: readonly RejectedRegistration[];
}

/**
 * What the named contracts are, with those reached through them (commit store, RMN proxy and RMN of a 1.5 off-ramp).
 * A router is named by its operator: `{ address, role: 'router', namedBy: address }`.
 */
export async function identify(node: ChainNode, registrations: readonly Registration[], network: Network) {
  const distinct = new Map(registrations.map((one) => [`${one.role} ${one.address}`, one]));
  const sequences = [...distinct.values()].map((registration) => contractsBehind(registration, network));
  const findings = await runBatched(node, sequences);
  const contracts = new Map<Hex, GenuineContract>();
  const rejected: RejectedRegistration[] = [];
  for (const [index, registration] of [...distinct.values()].entries()) {
    const { result, error } = findings[index] ?? {};
    for (const contract of result?.contracts ?? [])
      if (!contracts.has(contract.address)) contracts.set(contract.address, contract);
    rejected.push(...(result?.rejected ?? []));
    if (error instanceof RejectedContractError) rejected.push(error.of(registration));
    else if (error !== undefined) throw error;
  }
  return { contracts: [...contracts.values()], rejected };
}

/** The named contract is not what it should be. */
class RejectedContractError extends Error {
  readonly isSilent: boolean;
  constructor(reason: string, isSilent = false) {
    super(reason);
    this.isSilent = isSilent;
  }

  of(registration: Registration): RejectedRegistration {
    return { registration, reason: this.message, isSilent: this.isSilent };
  }
}

/** The contract itself and, where it has some, those reached through it. */
function* contractsBehind(registration: Registration, network: Network): BatchedCalls<Identification> {
  const contract = yield* identifyOne(registration, network);
  const reached = yield* reachedThrough(contract);
  if (!reached) return { contracts: [contract], rejected: [] };
  try {
    const behind = yield* contractsBehind(reached, network);
    return { contracts: [contract, ...behind.contracts], rejected: behind.rejected };
  } catch (error) {
    if (!(error instanceof RejectedContractError)) throw error;
    return { contracts: [contract], rejected: [error.of(reached)] };
  }
}

function* reachedThrough(contract: GenuineContract): BatchedCalls<Registration | undefined> {
  const { address: namedBy } = contract;
  if ('commitStore' in contract) return { address: contract.commitStore, role: 'commitStore', namedBy };
  if (contract.role === 'commitStore') return { address: contract.rmnProxy, role: 'rmnProxy', namedBy };
  if (contract.role !== 'rmnProxy') return undefined;
  const [answer] = yield [abi.callOf(abi.getArm, namedBy)];
  const [arm = zeroAddress] = abi.answerOf(abi.getArm, answer) ?? [];
  return registration(arm, 'rmn', namedBy)[0];
}

function* identifyOne(
  { address, role, namedBy }: Registration,
  network: Network,
): BatchedCalls<GenuineContract> {
  const [named] = yield [abi.callOf(abi.typeAndVersion, address)];
  const [words] = abi.answerOf(abi.typeAndVersion, named) ?? [];
  if (words === undefined) {
    throw new RejectedContractError('it has no code, or does not tell its type and version', true);
  }
  const genuine = { address, typeAndVersion: words, namedBy };
  const kind = kindOf(words, role);
  if (kind.version === null) return { ...genuine, ...kind };
  if (kind.version === '1.6.0' || kind.version === '2.0.0') {
    yield* readConfig(address, abi.getStaticConfig, network);
    return { ...genuine, ...kind };
  }
  switch (kind.role) {
    case 'onRamp': {
      const [, , dest] = yield* readConfig(address, abi.getOnRampConfig15, network);
      return { ...genuine, role: kind.role, version: kind.version, destChainSelector: dest.toString() };
    }
    case 'offRamp': {
      const [commitStore, , source, onRamp] = yield* readConfig(address, abi.getOffRampConfig15, network);
      return {
        ...genuine,
        role: kind.role,
        version: kind.version,
        sourceChainSelector: source.toString(),
        onRamp: abi.lowerCase(onRamp),
        commitStore: abi.lowerCase(commitStore),
      };
    }
    case 'commitStore': {
      const [, source, onRamp, rmnProxy] = yield* readConfig(address, abi.getCommitStoreConfig, network);
      return {
        ...genuine,
        role: kind.role,
        version: kind.version,
        sourceChainSelector: source.toString(),
        onRamp: abi.lowerCase(onRamp),
        offRamp: namedBy,
        rmnProxy: abi.lowerCase(rmnProxy),
      };
    }
  }
}

/** What a contract was deployed with. It says on which chain it believes itself to be. */
function* readConfig<O extends abi.Params>(
  address: Hex,
  view: abi.ContractFunction<readonly [], O>,
  network: Network,
): BatchedCalls<abi.Values<O>> {
  const [answer] = yield [abi.callOf(view, address)];
  const config = abi.answerOf(view, answer);
  if (!config) throw new RejectedContractError('it does not tell its static configuration', true);
  const place = view.outputs.findIndex(({ name }) => name === 'chainSelector');
  const selector = String((config as readonly unknown[])[place]);
  if (selector !== network.selector) {
    throw new RejectedContractError(
      `it was deployed for chain selector ${selector}; ${network.name} is ${network.selector}`,
    );
  }
  return config;
}

/** What a role's contracts are called; the version of the lane follows from theirs. */
const typesOfRole: Record<ContractRole, readonly string[]> = {
  router: ['Router'],
  onRamp: ['EVM2EVMOnRamp', 'OnRamp'],
  offRamp: ['EVM2EVMOffRamp', 'OffRamp'],
  commitStore: ['CommitStore'],
  rmnProxy: ['ARMProxy', 'RMNProxy'],
  // Only those up to 1.5 bless; a proxy may have moved on to a later one.
  rmn: ['ARM', 'RMN', 'RMNRemote'],
};

type Kind =
  | Pick<OtherContract, 'role' | 'version'>
  | Pick<CommonRamp, 'role' | 'version'>
  | Pick<LaneOnRamp, 'role' | 'version'>
  | Pick<LaneOffRamp, 'role' | 'version'>
  | Pick<CommitStore, 'role' | 'version'>;

function kindOf(words: string, role: ContractRole): Kind {
  const [, type = '', major, minor] =
    /^(\w{1,64}) (\d{1,4})\.(\d{1,4})\.\d{1,4}(?:-[\w.]{1,32})?$/.exec(words) ?? [];
  if (!typesOfRole[role].includes(type)) {
    throw new RejectedContractError(
      `it calls itself ${JSON.stringify(words.slice(0, 100))}, which is no ${role} that we know`,
    );
  }
  if (role === 'router' || role === 'rmnProxy' || role === 'rmn') return { role, version: null };
  const servesOneLane = role === 'commitStore' || type.startsWith('EVM2EVM');
  const version = `${major}.${minor}`;
  if (servesOneLane && (version === '1.2' || version === '1.5')) return { role, version: `${version}.0` };
  if (role !== 'commitStore' && !servesOneLane) {
    if (version === '1.6') return { role, version: '1.6.0' };
    // 2.0 was called 1.7 until it was released.
    if (version === '1.7' || major === '2') return { role, version: '2.0.0' };
  }
  throw new RejectedContractError(`it calls itself ${JSON.stringify(words)}, a version that we do not know`);
}

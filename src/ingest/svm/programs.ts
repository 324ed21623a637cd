/**
 * Which programs are trusted: routers of the configuration, and the off-ramps that these let deliver, source by source.
 *
 * The router keeps an account for each off-ramp and source, `allowed_offramp`, with nothing in it. Its address is the name
 * under which the pair is stored. An off-ramp must also name the router as its own (`reference_addresses`).
 */
import { isDeepStrictEqual } from 'node:util';
import { knownNetworks } from '../../domain/networks/networks.ts';
import type { RegisteredContract } from '../../store/ledger/index-ledger.ts';
import type { Confirmation } from '../engine/confirmation.ts';
import type { ContractRegistry } from '../engine/contract-registry.ts';
import type { ConnectOptions } from '../engine/family.ts';
import { NodeError } from '../engine/faults.ts';
import { UnreadableDataError } from '../engine/json-rpc/answer-reader.ts';
import type { Progress } from '../engine/progress.ts';
import { isAllowedOffRamp, readReferencedRouter, readRouterConfig } from './accounts.ts';
import { readable } from './decode/borsh.ts';
import type { OffRampRegistration, TrustedPrograms } from './decode/transaction-facts.ts';
import type { Chain, ChainNode } from './node.ts';
import { programAddresses } from './program-addresses.ts';
import type { SvmSource } from './settings.ts';

export type TrustedProgram =
  | { readonly role: 'router'; readonly program: string }
  | {
      readonly role: 'offRamp';
      readonly program: string;
      readonly router: string;
      /** Selector in decimal. */
      readonly source: string;
    };

export type ProgramRegistry = ContractRegistry<string, TrustedProgram>;

/** What the parts of a network's reader share. */
export interface SvmNetwork {
  readonly source: SvmSource;
  readonly chain: Chain;
  readonly store: ConnectOptions['store'];
  readonly progress: Progress;
  readonly registry: ProgramRegistry;
  readonly confirmation: Confirmation<ChainNode>;
}

/** Which registered programs are trusted. */
export interface ProgramCheck {
  readonly contracts: readonly RegisteredContract[];
  /** Descriptions of off-ramps that were rejected as untrusted. */
  readonly rejected: readonly string[];
}

export function routerContract(router: string): RegisteredContract {
  return { address: router, namedBy: null, blockHash: null, body: { role: 'router', program: router } };
}

/** @param rmnRemotes the program to which each router hands copies of its events */
export function trustedPrograms(
  contracts: Iterable<TrustedProgram>,
  rmnRemotes: ReadonlyMap<string, string>,
): TrustedPrograms {
  const routers = new Set<string>();
  const offRamps = new Map<string, Set<string>>();
  for (const contract of contracts) {
    if (contract.role === 'router') routers.add(contract.program);
    else offRamps.set(contract.program, (offRamps.get(contract.program) ?? new Set()).add(contract.source));
  }
  return {
    rmnRemoteOf: (program) => (routers.has(program) ? rmnRemotes.get(program) : undefined),
    isRouter: (program) => routers.has(program),
    isOffRamp: (program) => offRamps.has(program),
    isAllowed: (offRamp, source) => offRamps.get(offRamp)?.has(source.toString()) === true,
  };
}

/** The programs whose transactions have to be read, each once. */
export function programsOf(contracts: Iterable<TrustedProgram>): readonly string[] {
  return [...new Set([...contracts].map(({ program }) => program))];
}

/** The rmn_remote of each router. Throws where a router is not the router of this chain. */
export async function readRouters(
  node: ChainNode,
  routers: readonly string[],
  selector: string,
  minContextSlot: number,
): Promise<ReadonlyMap<string, string>> {
  const accounts = await node.accounts(routers.map(programAddresses.config), minContextSlot);
  return new Map(
    routers.map((router, index) => {
      const wrong = (what: string) =>
        new NodeError(`${node.name}: the router ${router} ${what}; check \`routers\``, 'configuration');
      const unreadable = (why: string) => wrong(`has no configuration account there (${why})`);
      const account = accounts[index];
      if (!account) throw unreadable('none');
      try {
        const { chainSelector, rmnRemote } = readRouterConfig(account, router);
        if (chainSelector.toString() === selector) return [router, rmnRemote];
        throw wrong(`says that its chain is ${chainSelector}, not ${selector}`);
      } catch (error) {
        throw error instanceof UnreadableDataError ? unreadable(error.message) : error;
      }
    }),
  );
}

/** What an endpoint's accounts say of off-ramps, where a second endpoint's say the same. */
export async function agreedCheck(
  confirmation: Confirmation<ChainNode>,
  node: ChainNode,
  offRamps: readonly unknown[],
  minimumHead: number,
  check: (node: ChainNode) => Promise<ProgramCheck>,
): Promise<ProgramCheck> {
  if (offRamps.length === 0) return { contracts: [], rejected: [] };
  const checked = await check(node);
  const claim = { what: 'accounts that say which off-ramps deliver for a router' };
  await confirmation.confirm(node, [claim], {
    opinionsOn: async (other) => [isDeepStrictEqual(await check(other), checked) ? 'has' : 'denies'],
    minimumHead,
  });
  return checked;
}

/** Trusts off-ramps registered in the routers' history that refer to these routers themselves. */
export async function checkRegistrations(
  node: ChainNode,
  registrations: readonly OffRampRegistration[],
  minContextSlot: number,
): Promise<ProgramCheck> {
  const offRamps = [...new Set(registrations.map(({ offRamp }) => offRamp))];
  const routerOf = await readReferences(node, offRamps, minContextSlot);
  const contracts = new Map<string, RegisteredContract>();
  const rejected = new Set<string>();
  for (const registration of registrations) {
    const { router, offRamp } = registration;
    const referenced = routerOf.get(offRamp);
    if (referenced === router) {
      const contract = offRampContract(registration);
      contracts.set(contract.address, contract);
    } else {
      rejected.add(
        `Router ${router} names the off-ramp ${offRamp}, which delivers for ${referenced ?? 'no router'}`,
      );
    }
  }
  return { contracts: [...contracts.values()], rejected: [...rejected] };
}

/** Trusts configured off-ramps for each source from which a router lets them deliver now. */
export async function checkOffRamps(
  node: ChainNode,
  offRamps: readonly string[],
  routers: readonly string[],
  minContextSlot: number,
): Promise<ProgramCheck> {
  const registrations = offRamps.flatMap((offRamp) =>
    routers.flatMap((router) =>
      knownNetworks().map(({ selector }) => ({ router, offRamp, sourceSelector: BigInt(selector) })),
    ),
  );
  const accounts = await node.accounts(
    registrations.map(({ router, offRamp, sourceSelector }) =>
      programAddresses.allowedOffRamp(router, sourceSelector, offRamp),
    ),
    minContextSlot,
  );
  const allowed = registrations.filter(({ router }, index) => isAllowedOffRamp(accounts[index], router));
  const unknown = offRamps.filter(
    (offRamp) => !allowed.some((registration) => registration.offRamp === offRamp),
  );
  const { contracts, rejected } = await checkRegistrations(node, allowed, minContextSlot);
  return {
    contracts,
    rejected: [
      ...rejected,
      ...unknown.map((offRamp) => `No router lets the off-ramp ${offRamp} of the configuration deliver`),
    ],
  };
}

/** The router of each off-ramp, where it names one. */
async function readReferences(node: ChainNode, offRamps: readonly string[], minContextSlot: number) {
  const accounts = await node.accounts(offRamps.map(programAddresses.referenceAddresses), minContextSlot);
  return new Map(
    offRamps.flatMap((offRamp, index) => {
      const account = accounts[index];
      const router = account && readable(() => readReferencedRouter(account, offRamp));
      return router === undefined ? [] : [[offRamp, router] as const];
    }),
  );
}

function offRampContract({ router, offRamp, sourceSelector }: OffRampRegistration): RegisteredContract {
  const source = sourceSelector.toString();
  const body: TrustedProgram = { role: 'offRamp', program: offRamp, router, source };
  const address = programAddresses.allowedOffRamp(router, sourceSelector, offRamp);
  return { address, namedBy: router, blockHash: null, body };
}

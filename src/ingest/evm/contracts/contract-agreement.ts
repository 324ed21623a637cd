/**
 * What endpoints agree on about registered contracts: one endpoint alone could drop a lane, or bring in an impostor.
 *
 * With several endpoints configured, a contract is trusted or rejected when two of them describe it in the same way. A
 * single one is trusted, and so is an acceptance while no other endpoint answers: the event that registered the contract
 * is confirmed on its own.
 */
import type { Network } from '../../../domain/networks/networks.ts';
import type { Chain, ChainNode, Hex } from '../rpc/chain.ts';
import {
  currentRegistrations,
  type GenuineContract,
  type Identification,
  identify,
  type Registration,
} from './contracts.ts';

/** A contract that this endpoint and others describe differently, or whose rejection no other could confirm. */
export interface Dispute {
  readonly registration: Registration;
  /** Who says what, for people. */
  readonly detail: string;
}

/** What an endpoint says of a contract. `text` is the same for two endpoints that agree. */
type Claim = ReturnType<typeof acceptance>;

export async function identifyTogether(
  chain: Chain,
  node: ChainNode,
  registrations: readonly Registration[],
  network: Network,
): Promise<Identification & { readonly disputed: readonly Dispute[] }> {
  const own = await identify(node, registrations, network);
  if (chain.health().length === 1) return { ...own, disputed: [] };
  let left = [...claimsOf(own).values()];
  const answers: { readonly name: string; readonly claims: ReadonlyMap<Hex, Claim> }[] = [];
  const ask = async (other: ChainNode) => ({
    name: other.name,
    claims: claimsOf(await identify(other, registrations, network)),
  });
  for await (const answer of chain.opinions(node, ask)) {
    answers.push(answer);
    left = left.filter(({ registration, text }) => answer.claims.get(registration.address)?.text !== text);
    if (left.length === 0) break;
  }
  /** An endpoint that is behind does not know a contract yet: no contradiction to one that does. */
  const contradicts = ({ registration, isAcceptance }: Claim) =>
    !isAcceptance || answers.some(({ claims }) => claims.get(registration.address)?.text !== 'silent');
  const disputed = left.filter(contradicts).map(({ registration, words }): Dispute => {
    const others = answers.map(
      ({ name, claims }) => `${name}: ${claims.get(registration.address)?.words ?? 'nothing'}`,
    );
    const said = [`${node.name}: ${words}`, ...others].join('; ');
    const problem = others.length > 0 ? 'endpoints disagree' : 'no other endpoint answers';
    return { registration, detail: `${registration.role} ${registration.address}: ${problem}: ${said}` };
  });
  const isDisputed = (address: Hex) => disputed.some(({ registration }) => registration.address === address);
  return {
    contracts: own.contracts.filter(({ address }) => !isDisputed(address)),
    rejected: own.rejected.filter(({ registration }) => !isDisputed(registration.address)),
    disputed,
  };
}

function claimsOf({ contracts, rejected }: Identification): ReadonlyMap<Hex, Claim> {
  const rejections = rejected.map(({ registration, reason, isSilent }): Claim => {
    return { registration, text: isSilent ? 'silent' : 'rejected', words: reason, isAcceptance: false };
  });
  const claims = [...rejections, ...contracts.map(acceptance)];
  return new Map(claims.map((claim) => [claim.registration.address, claim]));
}

function acceptance(contract: GenuineContract) {
  const { address, role, namedBy, typeAndVersion } = contract;
  const registration: Registration = { address, role, namedBy };
  return { registration, text: JSON.stringify(contract), words: typeAndVersion, isAcceptance: true };
}

/**
 * The contracts that the routers register at present, as two endpoints agree. What is left out is found in the routers'
 * history.
 */
export async function agreedRegistrations(chain: Chain, node: ChainNode, routers: readonly Hex[]) {
  const own = await currentRegistrations(node, routers);
  if (chain.health().length === 1) return own;
  const confirmed = new Set<string>();
  for await (const registrations of chain.opinions(node, (other) => currentRegistrations(other, routers))) {
    for (const registration of registrations) confirmed.add(JSON.stringify(registration));
    if (own.every((registration) => confirmed.has(JSON.stringify(registration)))) break;
  }
  return own.filter((registration) => confirmed.has(JSON.stringify(registration)));
}

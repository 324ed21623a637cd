/**
 * What endpoints agree on about registered contracts: one endpoint alone could drop a lane, or bring in an impostor.
 *
 * With several endpoints configured, a contract is trusted or rejected when two of them describe it in the same way. A
 * single one is believed, and so is an acceptance while no other endpoint answers: the event that registered the contract
 * is confirmed on its own.
 */
import type { Network } from '../../../domain/networks/networks.ts';
import type { Chain, ChainNode, Hex } from '../rpc/chain.ts';
import {
  currentNamings,
  type Examination,
  examine,
  type GenuineContract,
  type Naming,
  type RefusedNaming,
} from './contracts.ts';

/** A contract that this endpoint and others describe differently, or whose rejection no other could confirm. */
export interface Dispute {
  readonly naming: Naming;
  /** Who says what, for people. */
  readonly detail: string;
}

export interface AgreedExamination extends Examination {
  readonly disputed: readonly Dispute[];
}

interface Claim {
  readonly naming: Naming;
  /** The same for two endpoints that agree. */
  readonly text: string;
  readonly words: string;
  readonly isAcceptance: boolean;
}

export async function examineTogether(
  chain: Chain,
  node: ChainNode,
  namings: readonly Naming[],
  network: Network,
): Promise<AgreedExamination> {
  const own = await examine(node, namings, network);
  if (chain.health().length === 1) return { ...own, disputed: [] };
  let left = [...claimsOf(own).values()];
  const answers: { readonly name: string; readonly claims: ReadonlyMap<Hex, Claim> }[] = [];
  const ask = async (other: ChainNode) => ({
    name: other.name,
    claims: claimsOf(await examine(other, namings, network)),
  });
  for await (const answer of chain.opinions(node, ask)) {
    answers.push(answer);
    left = left.filter(({ naming, text }) => answer.claims.get(naming.address)?.text !== text);
    if (left.length === 0) break;
  }
  /** An endpoint that is behind does not know a contract yet: no contradiction to one that does. */
  const contradicts = ({ naming, isAcceptance }: Claim) =>
    !isAcceptance || answers.some(({ claims }) => claims.get(naming.address)?.text !== 'silent');
  const disputed = left.filter(contradicts).map(({ naming, words }): Dispute => {
    const others = answers.map(
      ({ name, claims }) => `${name}: ${claims.get(naming.address)?.words ?? 'nothing'}`,
    );
    const said = [`${node.name}: ${words}`, ...others].join('; ');
    const problem = others.length > 0 ? 'endpoints disagree' : 'no other endpoint answers';
    return { naming, detail: `${naming.role} ${naming.address}: ${problem}: ${said}` };
  });
  const isDisputed = (address: Hex) => disputed.some(({ naming }) => naming.address === address);
  return {
    contracts: own.contracts.filter(({ address }) => !isDisputed(address)),
    refused: own.refused.filter(({ naming }) => !isDisputed(naming.address)),
    disputed,
  };
}

function claimsOf({ contracts, refused }: Examination): ReadonlyMap<Hex, Claim> {
  return new Map([
    ...refused.map((refusal) => [refusal.naming.address, rejection(refusal)] as const),
    ...contracts.map((contract) => [contract.address, acceptance(contract)] as const),
  ]);
}

function rejection({ naming, reason, isSilent }: RefusedNaming): Claim {
  return { naming, text: isSilent ? 'silent' : 'rejected', words: reason, isAcceptance: false };
}

function acceptance(contract: GenuineContract): Claim {
  const { address, role, namedBy, typeAndVersion } = contract;
  const naming = { address, role, namedBy };
  return { naming, text: JSON.stringify(contract), words: typeAndVersion, isAcceptance: true };
}

/**
 * The contracts that the routers register at present, as two endpoints agree. What is left out is found in the routers'
 * history.
 */
export async function agreedNamings(
  chain: Chain,
  node: ChainNode,
  routers: readonly Hex[],
): Promise<readonly Naming[]> {
  const own = await currentNamings(node, routers);
  if (chain.health().length === 1) return own;
  const confirmed = new Set<string>();
  for await (const namings of chain.opinions(node, (other) => currentNamings(other, routers))) {
    for (const naming of namings) confirmed.add(JSON.stringify(naming));
    if (own.every((naming) => confirmed.has(JSON.stringify(naming)))) break;
  }
  return own.filter((naming) => confirmed.has(JSON.stringify(naming)));
}

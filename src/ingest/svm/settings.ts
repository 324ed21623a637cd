/** The settings of a Solana network in lanescan.yaml that other families do not have. */
import type { Refuse } from '../../base/config-entries.ts';
import { parseAddress, zeroAddresses } from '../../domain/addresses.ts';
import type { NetworkSource } from '../engine/family.ts';
import type { FamilySettings } from '../engine/settings.ts';

export interface SvmSource extends NetworkSource {
  /** Program ids, the root of trust: an off-ramp is trusted only where one of these lets it deliver. */
  readonly routers: readonly string[];
  /**
   * Program ids of off-ramps. They are checked against the routers; without them, the whole history of the routers has to
   * be read to find the off-ramps.
   */
  readonly offramps: readonly string[];
}

const MAX_PROGRAMS = 20;

export const svmSettings: FamilySettings = {
  keys: ['routers', 'offramps'],
  parse: (common, given, { refuse }): SvmSource => {
    const routers = parsePrograms(given.routers, 'routers', refuse);
    if (routers.length === 0) {
      return refuse(
        'routers',
        'is missing',
        'It takes a list with the program id of the CCIP router, in quotes.',
      );
    }
    return { ...common, routers, offramps: parsePrograms(given.offramps, 'offramps', refuse) };
  },
};

function parsePrograms(value: unknown, key: string, refuse: Refuse): readonly string[] {
  if (value === undefined || value === null) return [];
  const remedy = `It takes a list of 1 to ${MAX_PROGRAMS} program ids in base58, in quotes.`;
  if (!Array.isArray(value)) return refuse(key, 'is not a list', remedy);
  if (value.length === 0 || value.length > MAX_PROGRAMS) {
    return refuse(key, `has ${value.length} entries`, remedy);
  }
  const programs = value.map((text, index) => {
    const address = typeof text === 'string' ? parseAddress(text.trim(), 'SVM') : undefined;
    if (!address || address.text === zeroAddresses.SVM) {
      return refuse(
        `${key}[${index}]`,
        'is not a program id',
        'It takes 32 to 44 characters of base58, in quotes.',
      );
    }
    return address.text;
  });
  for (const [index, program] of programs.entries()) {
    const first = programs.indexOf(program);
    if (first !== index)
      refuse(`${key}[${index}]`, `is the same as ${key}[${first}]`, 'Take one of them out.');
  }
  return programs;
}

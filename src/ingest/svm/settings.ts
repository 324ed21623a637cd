/** The settings of a Solana network that other families do not have. */
import Type from 'typebox';
import { distinct, refined } from '../../base/settings.ts';
import { parseAddress, zeroAddresses } from '../../domain/addresses.ts';
import type { NetworkSource } from '../engine/family.ts';
import { commonKeys, sourceOf } from '../engine/settings.ts';

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

const program = refined(
  Type.String({ takes: 'a program id: 32 to 44 characters of base58, in quotes' }),
  (text) => {
    const address = parseAddress(text, 'SVM')?.text;
    return address === zeroAddresses.SVM ? undefined : address;
  },
);

const programs = (description: string) =>
  distinct(Type.Array(program, { minItems: 1, maxItems: MAX_PROGRAMS, description }), (id) => id);

export const svmSettings = refined(
  Type.Object(
    {
      ...commonKeys,
      routers: programs('Program ids of CCIP routers, in quotes.'),
      offramps: Type.Optional(
        programs(
          'Program ids of off-ramps; they are checked against the routers. Without them the routers’ whole history is read ' +
            'to find the off-ramps.',
        ),
      ),
    },
    { title: 'Solana network', additionalProperties: false },
  ),
  ({ offramps = [], ...given }): SvmSource => ({ ...sourceOf(given), offramps }),
);

/** The settings of a Solana network that other families do not have. */
import Type, { type Static } from 'typebox';
import { distinct, refined } from '../../base/settings.ts';
import { parseAddress, zeroAddresses } from '../../domain/addresses.ts';
import { commonKeys, sourceOf } from '../engine/settings.ts';

export type SvmSource = Static<typeof svmSettings>;

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
  ({ offramps = [], ...given }) => ({ ...sourceOf(given), offramps }),
);

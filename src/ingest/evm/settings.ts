/** The settings of an EVM network that other families do not have. */
import Type, { type Static } from 'typebox';
import { distinct, refined } from '../../base/settings.ts';
import { parseAddress } from '../../domain/addresses.ts';
import { commonKeys, endpointUrl, sourceOf } from '../engine/settings.ts';
import type { Hex } from './rpc/chain.ts';

export type EvmSource = Static<typeof evmSettings>;

const MAX_ROUTERS = 20;
const MAX_DEPTH = 10_000;

/** All trust derives from the routers, so a typing error must not pass. */
const router = refined(
  Type.String({
    pattern: '^0x[0-9a-fA-F]{40}$',
    takes: '0x and 40 hexadecimal digits, in quotes',
  }),
  (text, { reject }): Hex | undefined => {
    const address = parseAddress(text, 'EVM');
    if (!address) return undefined;
    const isMixed = /[a-f]/.test(text) && /[A-F]/.test(text);
    if (isMixed && text !== address.text)
      reject(
        `is ${text}, whose upper and lower case do not fit its digits (EIP-55)`,
        'Copy it again from where it was published; a digit may be wrong.',
      );
    if (/^0*$/.test(address.bytes)) reject('is the zero address', 'No contract is there.');
    return `0x${address.bytes}`;
  },
);

export const evmSettings = refined(
  Type.Object(
    {
      ...commonKeys,
      routers: distinct(
        Type.Array(router, {
          minItems: 1,
          maxItems: MAX_ROUTERS,
          description: 'Addresses of CCIP Routers, in quotes.',
          takes: `a list of 1 to ${MAX_ROUTERS} addresses in quotes, among them the network's CCIP Router`,
        }),
        (address) => address,
      ),
      deployed: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
          description:
            'The block in which the first router was deployed; there is no history below it. ' +
            'Default: found with `eth_getCode`, or block 0 where no endpoint has old state.',
        }),
      ),
      finality: Type.Union(
        [Type.Enum(['finalized', 'safe']), Type.Integer({ minimum: 0, maximum: MAX_DEPTH })],
        {
          default: 'finalized',
          description: `\`finalized\`, \`safe\`, or a depth from 0 to ${MAX_DEPTH} blocks.`,
          takes: `finalized, safe, or a depth from 0 to ${MAX_DEPTH} blocks`,
        },
      ),
      acceptDeepReorgs: Type.Boolean({
        default: false,
        description:
          '`true`: one endpoint alone may take back blocks that were final; for development chains, which are reset.',
      }),
      maxRange: Type.Integer({
        minimum: 1,
        maximum: 10_000_000,
        default: 10_000,
        description: 'Blocks in one request for logs, at most.',
      }),
      verify: refined(
        // YAML 1.1 reads `off` as false.
        Type.Unsafe<'head' | 'all' | 'off' | false>({
          enum: ['head', 'all', 'off', false],
          default: 'head',
          description:
            '`head` checks the logs of new blocks against their bloom filters, `all` those of history too, `off` none.',
          takes: 'head, all or off',
        }),
        (value) => value || 'off',
      ),
      verifierResults: Type.Optional({
        ...endpointUrl,
        description: 'URL of a service that reports verifications before they are on chain (CCIP 2.0).',
      }),
    },
    { title: 'EVM network', additionalProperties: false },
  ),
  ({ verifierResults = null, ...given }) => ({ ...sourceOf(given), verifierResults }),
);

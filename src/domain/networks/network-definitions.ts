/**
 * The setting `chains`: networks that the built-in table does not know, such as private and new ones.
 *
 * A selector, name or chain id must mean one network. A chain that the table has come to know since may stay defined, as
 * long as both agree on what it is.
 */
import Type from 'typebox';
import { refined } from '../../base/settings.ts';
import { chainFamilies } from '../addresses.ts';
import { website } from '../names/name-definitions.ts';
import { type Network, networks } from './networks.ts';

const MAX_CHAINS = 1_000;
const MAX_SELECTOR = 2n ** 64n - 1n;
const EVM_CHAIN_ID = /^[1-9]\d{0,77}$/;
const CHAIN_ID = /^[A-Za-z0-9:_-]{1,64}$/;

const selector = refined(
  Type.String({
    pattern: '^[1-9]\\d{0,19}$',
    description: 'CCIP’s number for the chain, in quotes.',
    takes: `CCIP's number for the chain in quotes, from 1 to ${MAX_SELECTOR}`,
  }),
  (text) => (BigInt(text) <= MAX_SELECTOR ? text : undefined),
);

const chain = refined(
  Type.Object(
    {
      name: Type.String({
        pattern: '^(?=[a-z0-9_-]*[a-z])[a-z0-9][a-z0-9_-]{0,62}$',
        description: 'Lower-case letters, digits, `-` and `_`, with at least one letter.',
        takes:
          'a name such as acme-mainnet: lower-case letters, digits, - and _, at most 63, with at least one letter',
      }),
      selector,
      chainId: Type.Union([Type.String(), Type.Integer({ minimum: 0 })], {
        description: 'What `eth_chainId` answers; on other families, what identifies the chain.',
        takes: 'what identifies the chain: on EVM the number that eth_chainId answers',
      }),
      family: Type.Enum(chainFamilies, {
        default: 'EVM',
        description: `One of ${chainFamilies.join(', ')}.`,
      }),
      displayName: Type.Optional(
        Type.String({
          pattern: '^[^\\u0000-\\u001f\\u007f]{1,64}$',
          description: 'The name to show. Default: `name`.',
          takes: '1 to 64 characters',
        }),
      ),
      blockExplorer: Type.Optional({ ...website, description: 'URL of its block explorer.' }),
    },
    { additionalProperties: false },
  ),
  ({ displayName, ...chain }, { reject }): Network => {
    const chainId = String(chain.chainId);
    if (!(chain.family === 'EVM' ? EVM_CHAIN_ID : CHAIN_ID).test(chainId))
      reject(
        `is ${JSON.stringify(chainId)}`,
        chain.family === 'EVM'
          ? 'It takes the number that eth_chainId answers.'
          : `It takes what identifies a ${chain.family} chain.`,
        'chainId',
      );
    return { ...chain, chainId, displayName: displayName ?? chain.name };
  },
);

export const chainsSetting = refined(
  Type.Array(chain, {
    maxItems: MAX_CHAINS,
    default: [],
    description: 'Chains that are not built in.',
    see: 'docs/operations/indexing.md#a-chain-that-is-not-built-in',
  }),
  (chains, { reject }) => {
    const replaced = new Set(chains.map(({ selector }) => selector));
    const others = networks.filter(({ selector }) => !replaced.has(selector));
    for (const [index, chain] of chains.entries()) {
      const { selector, chainId, family } = chain;
      const known = networks.find((network) => network.selector === selector);
      // A chain of the built-in table cannot be made another one.
      if (known && (known.chainId !== chainId || known.family !== family))
        reject(
          `is ${selector}, which is ${known.name} (${known.family} chain ${known.chainId})`,
          'Check the selector; that chain needs no definition.',
          index,
          'selector',
        );
      for (const key of ['selector', 'name', 'chainId'] as const) {
        // A number must not be the selector of one network and the chain id of another.
        const taken = [...others, ...chains.slice(0, index)].find((other) =>
          [other.selector, other.name, other.chainId].includes(chain[key]),
        );
        if (taken)
          reject(
            `is ${chain[key]}, which already means ${taken.name}`,
            'Selectors, names and chain ids must be unique.',
            index,
            key,
          );
      }
    }
    return chains;
  },
);

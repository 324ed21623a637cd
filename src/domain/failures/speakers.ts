/** Who says why an execution failed. Apart from the other modules, so that the explorer bundles no tables of errors. */

/** Only `ccip` speaks for the lane; what others say is their own claim. */
export type Speaker = 'ccip' | 'receiver' | 'token-pool' | 'other-instruction' | 'unknown';

export const speakerWords: Readonly<Record<Speaker, string>> = {
  ccip: 'CCIP',
  receiver: 'the receiver, which may claim anything',
  'token-pool': 'the token or its pool, which may claim anything',
  'other-instruction': 'another instruction of the transaction',
  unknown: 'not known',
};

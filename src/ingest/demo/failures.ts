/** Return data of failed executions in the demo: what receivers on real networks revert with. */

const word = (value: string) => value.padStart(64, '0');

/** `ReceiverError(bytes)` around the data of the receiver, in hexadecimal without `0x`. */
function receiverError(inner: string): string {
  const length = inner.length / 2;
  const padded = inner.padEnd(Math.ceil(length / 32) * 64, '0');
  return `0x0a8d6e8c${word('20')}${word(length.toString(16))}${padded}`;
}

const returnData: readonly string[] = [
  // Error("deadline passed")
  receiverError(`08c379a0${word('20')}${word('f')}${'646561646c696e6520706173736564'.padEnd(64, '0')}`),
  // Out of gas: nothing.
  receiverError(''),
  // EnforcedPause()
  receiverError('d93c0665'),
  // Panic(17)
  receiverError(`4e487b71${word('11')}`),
  // An error of the receiver's own, which no table has.
  receiverError(`76baadda${word('23a0')}${word('251c')}`),
];

/** The same for the same message and attempt. */
export function failedReturnData(number: number): string {
  return returnData[number % returnData.length] ?? '0x';
}

/** The oracle networks of CCIP, played by keys of the lab: their contracts check real signatures. */
import { concat, type Hex, keccak256, numberToHex, stringToHex } from 'viem';
import { privateKeyToAddress, sign } from 'viem/accounts';

export interface Signer {
  readonly address: Hex;
  readonly key: Hex;
}

/** As many keys as asked for, the same ones in every run, in the order of their addresses. */
export function signersOf(name: string, count: number): readonly Signer[] {
  return Array.from({ length: count }, (_, index) => {
    const key = keccak256(stringToHex(`lanescan lab ${name} ${index}`));
    return { key, address: privateKeyToAddress(key) };
  }).sort((one, other) => (BigInt(one.address) < BigInt(other.address) ? -1 : 1));
}

/** As the OCR contracts take signatures: `rawVs` has one byte a signature, 0 or 1, padded to 32. */
export async function signForOcr(signers: readonly Signer[], hash: Hex) {
  const signatures = await Promise.all(signers.map(({ key }) => sign({ hash, privateKey: key })));
  const vs = signatures.map(({ yParity }) => numberToHex(yParity ?? 0, { size: 1 }));
  return {
    rs: signatures.map(({ r }) => r),
    ss: signatures.map(({ s }) => s),
    rawVs: concat([...vs, numberToHex(0, { size: 32 - vs.length })]),
  };
}

const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/**
 * As RMN and the committee verifier take signatures: without a parity, which counts as even. Every signature has a
 * twin of the other parity, s mirrored at the curve's order.
 */
export async function signEven(signers: readonly Signer[], hash: Hex) {
  return Promise.all(
    signers.map(async ({ key }) => {
      const { r, s, yParity } = await sign({ hash, privateKey: key });
      return { r, s: yParity === 0 ? s : numberToHex(CURVE_ORDER - BigInt(s), { size: 32 }) };
    }),
  );
}

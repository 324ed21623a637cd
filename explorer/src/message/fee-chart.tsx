/** The parts of a fee as a stacked bar, the largest first, and as a list. */
import type { Fees, NetworkInfo } from '../../../src/domain/message.ts';
import { grouped, percent, printable } from '../../../src/text/format.ts';
import { type MessagesOf, SearchableShortHash } from '../parts/hash.tsx';

type FeeItem = NonNullable<Fees['fixedFeesDetails']['items']>[number];

const names: Record<FeeItem['feeType'], string> = {
  VERIFIER: 'Verifier',
  EXECUTOR: 'Executor',
  TOKEN_POOL: 'Token pool',
  NETWORK: 'Network',
};

interface FeeChartProps {
  readonly items: readonly FeeItem[];
  readonly total: string;
  /** An amount in units that people use. */
  readonly amountOf: (amount: string) => string;
  /** What a contract is to the message. */
  readonly roleOf: (address: string) => string | undefined;
  /** The network of the contracts. */
  readonly source: NetworkInfo;
  /** The messages that the contracts have to do with. */
  readonly messages: MessagesOf;
}

export function FeeChart({ items, total, amountOf, roleOf, source, messages }: FeeChartProps) {
  const sorted = [...items].sort((a, b) => (BigInt(b.amount) > BigInt(a.amount) ? 1 : -1));
  const whole = items.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
  // Thousandths are finer than a pixel, and turn amounts of any size into safe numbers.
  const share = (amount: string) => (whole === 0n ? 0 : Number((BigInt(amount) * 1_000n) / whole));
  let at = 0;
  const bars = sorted.map(({ amount }) => {
    const bar = { start: at, width: share(amount) };
    at += bar.width;
    return bar;
  });
  return (
    <figure className="fee-chart">
      <svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
        {bars.map(({ start, width }, index) => (
          <rect
            key={start}
            className={`fee-part fee-part-${Math.min(index, 5)}`}
            x={start}
            width={Math.max(0, width - 3)}
            height="10"
          />
        ))}
      </svg>
      <ul>
        {sorted.map(({ feeType, amount, contractAddress }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a part is known by its place.
          <li key={index}>
            <span className={`fee-key fee-part-${Math.min(index, 5)}`} />
            <span className="fee-name wrap">
              {names[feeType]} <FeeRole role={roleOf(contractAddress)} />
            </span>
            <span className="fee-share">{percent(share(amount), 1_000)}</span>
            <span className="fee-amount" title={`${grouped(amount)} smallest units`}>
              {amountOf(amount)}
            </span>
            <SearchableShortHash
              text={contractAddress}
              what="contract"
              search={messages}
              at={{ network: source, page: 'address' }}
            />
          </li>
        ))}
      </ul>
      {whole !== BigInt(total) && (
        <figcaption className="muted note">
          The parts make {amountOf(String(whole))}, not the total.
        </figcaption>
      )}
    </figure>
  );
}

function FeeRole({ role }: { readonly role: string | undefined }) {
  return role === undefined ? null : <bdi className="muted">{printable(role)}</bdi>;
}

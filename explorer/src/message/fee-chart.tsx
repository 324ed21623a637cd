/** The parts of a fee as a stacked bar, the largest first, and as a list. */
import type { Fees, Message } from '../../../src/domain/message.ts';
import {
  contractRole,
  type NamedToken,
  type Names,
  paidAmount,
} from '../../../src/domain/names/message-names.ts';
import { grouped, percent, printable } from '../../../src/text/format.ts';
import { laneMessages, SearchableShortHash } from '../parts/hash.tsx';

type FeeItem = NonNullable<Fees['fixedFeesDetails']['items']>[number];

const typeNames: Record<FeeItem['feeType'], string> = {
  VERIFIER: 'Verifier',
  EXECUTOR: 'Executor',
  TOKEN_POOL: 'Token pool',
  NETWORK: 'Network',
};

const colourOf = (index: number) => `var(--part-${Math.min(index, 5)})`;

interface FeeChartProps {
  readonly items: readonly FeeItem[];
  readonly total: string;
  /** The token of the fee. */
  readonly token: NamedToken | undefined;
  readonly message: Message;
  readonly names: Names;
}

export function FeeChart({ items, total, token, message, names }: FeeChartProps) {
  const amountOf = (amount: string) => paidAmount(amount, token)?.exact ?? grouped(amount);
  const roleOf = (address: string) => contractRole(message, address, names) ?? '';
  const sorted = [...items].sort((a, b) => (BigInt(b.amount) > BigInt(a.amount) ? 1 : -1));
  const whole = items.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
  // Thousandths are finer than a pixel, and turn amounts of any size into safe numbers.
  const share = (amount: string) => (whole === 0n ? 0 : Number((BigInt(amount) * 1_000n) / whole));
  return (
    <figure className="fee-chart stack gap-12">
      <svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
        {sorted.map(({ amount }, index) => (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: a part is known by its place.
            key={index}
            fill={colourOf(index)}
            x={sorted.slice(0, index).reduce((start, before) => start + share(before.amount), 0)}
            width={Math.max(0, share(amount) - 3)}
            height="10"
          />
        ))}
      </svg>
      <ul>
        {sorted.map(({ feeType, amount, contractAddress }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a part is known by its place.
          <li key={index}>
            <span className="key" style={{ background: colourOf(index) }} />
            <span className="wrap">
              {typeNames[feeType]} <bdi className="muted">{printable(roleOf(contractAddress))}</bdi>
            </span>
            <span className="fee-share">{percent(share(amount), 1_000)}</span>
            <span className="fee-amount muted" title={`${grouped(amount)} smallest units`}>
              {amountOf(amount)}
            </span>
            <SearchableShortHash
              text={contractAddress}
              what="contract"
              search={laneMessages(message)}
              network={message.sourceNetworkInfo}
            />
          </li>
        ))}
      </ul>
      {whole !== BigInt(total) && (
        <figcaption className="muted small">
          The parts make {amountOf(String(whole))}, not the total.
        </figcaption>
      )}
    </figure>
  );
}

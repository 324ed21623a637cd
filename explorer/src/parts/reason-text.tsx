/** The sentence of a reason: amounts in units that people use, addresses as links. */

import type { FailureReason } from '../../../src/client/api-types.ts';
import type { NetworkInfo } from '../../../src/domain/message.ts';
import { reasonInUnits, reasonToken } from '../../../src/domain/names/message-names.ts';
import { printable } from '../../../src/text/format.ts';
import { useNames } from '../server/names.ts';
import { AddressText } from './address-text.tsx';

export function ReasonText({
  reason,
  network,
}: {
  readonly reason: FailureReason;
  /** The destination. */
  readonly network: NetworkInfo;
}) {
  const token = reasonToken(reason);
  const names = useNames(token === undefined ? [] : [token]);
  return (
    <span title={token === undefined ? undefined : printable(reason.text)}>
      <AddressText text={printable(reasonInUnits(reason, network, names))} />
    </span>
  );
}

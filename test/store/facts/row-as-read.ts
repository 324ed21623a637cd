/** Values that are written, as the driver returns them from the database. */
const timeColumns = ['seen_at'];
const byteColumns = ['block_hash', 'transaction', 'merkle_root', 'message_id', 'fact_id', 'onramp'];

export function rowAsRead(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).map(([column, value]) => {
      if (value === null || value === undefined || Buffer.isBuffer(value)) return [column, value];
      if (byteColumns.includes(column)) return [column, Buffer.from(String(value), 'hex')];
      if (timeColumns.includes(column)) return [column, new Date(String(value))];
      return [column, column === 'block_number' ? String(value) : value];
    }),
  );
}

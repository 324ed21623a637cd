/** The sort orders of the lanes table; each sorts descending. */
import type { Lane } from '../../../src/client/api-types.ts';

export const laneOrders = {
  messages: { name: 'Messages', value: ({ messages }: Lane) => messages },
  inFlight: { name: 'In flight', value: ({ inFlight }: Lane) => inFlight },
  overdue: { name: 'Overdue', value: ({ overdue }: Lane) => overdue ?? -1 },
  action: { name: 'Need action', value: ({ readyForManualExecution }: Lane) => readyForManualExecution },
  p50: { name: '50 %', value: ({ delivery }: Lane) => delivery.p50Ms ?? -1 },
  p90: { name: '90 %', value: ({ delivery }: Lane) => delivery.p90Ms ?? -1 },
  p99: { name: '99 %', value: ({ delivery }: Lane) => delivery.p99Ms ?? -1 },
  last: { name: 'Last sent', value: ({ lastSentAt }: Lane) => Date.parse(lastSentAt) },
} as const;

export type LaneOrder = keyof typeof laneOrders;

/** The order in the URL. `sort` is set even when undefined: without the key, the router keeps the URL's value. */
export function laneOrderOf(parameters: Readonly<Record<string, unknown>>): { sort?: LaneOrder | undefined } {
  const { sort } = parameters;
  const isKnown = typeof sort === 'string' && Object.hasOwn(laneOrders, sort);
  return { sort: isKnown ? (sort as LaneOrder) : undefined };
}

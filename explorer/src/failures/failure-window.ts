/** The time that the page of failed messages shows, in the URL as `days`. */
export const failureWindows = { 7: '7 days', 30: '30 days', 90: '90 days' } as Readonly<
  Record<'7' | '30' | '90', string>
>;
export type FailureWindow = keyof typeof failureWindows;

export function failureWindowOf({ days }: Record<string, unknown>): { days?: FailureWindow } {
  const text = String(days);
  return Object.hasOwn(failureWindows, text) ? { days: text as FailureWindow } : {};
}

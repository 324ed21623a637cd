/** The shapes of the hosted service's API: its paths, the body of a list, errors and validators. */
import { createHash } from 'node:crypto';
import { type Message, type MessageSummary, summaryKeys } from '../../../src/domain/message.ts';

export type HostedPath =
  | { readonly kind: 'list' }
  | { readonly kind: 'message' | 'execution-inputs'; readonly messageId: string };

export function parseHostedPath(pathname: string): HostedPath | undefined {
  if (pathname === '/v2/messages') return { kind: 'list' };
  const [, messageId, inputs] =
    /^\/v2\/messages\/(0x[0-9a-f]{64})(\/execution-inputs)?$/.exec(pathname) ?? [];
  if (messageId === undefined) return undefined;
  return { kind: inputs ? 'execution-inputs' : 'message', messageId };
}

export function summaryOf(message: Message): MessageSummary {
  return Object.fromEntries(summaryKeys.map((key) => [key, message[key]])) as unknown as MessageSummary;
}

/** The body of a list; without a cursor it is the last page. */
export function listBody(data: readonly unknown[], limit: number, cursor: string | undefined): object {
  const hasNextPage = cursor !== undefined;
  return { data, pagination: { limit, hasNextPage, ...(hasNextPage && { cursor }) } };
}

export function etagOf(text: string): string {
  return `"${createHash('sha256').update(text).digest('hex').slice(0, 16)}"`;
}

export const hostedErrors = {
  limitTooHigh: (max: number) => ({
    error: 'INVALID_PARAMETERS',
    message: `limit must not be greater than ${max}`,
  }),
  unknownParameter: (name: string) => ({
    error: 'INVALID_PARAMETERS',
    message: `property ${name} should not exist`,
  }),
  expiredCursor: { error: 'INVALID_CURSOR', message: 'The cursor has expired.' },
  noSuchMessage: { error: 'NOT_FOUND', message: 'No such message.' },
  noSuchPath: { error: 'NOT_FOUND', message: 'Nothing here.' },
  notCommitted: { error: 'NOT_READY', message: 'Not committed yet.' },
  tooManyRequests: { error: 'RATE_LIMITED', message: 'Too many requests.' },
} as const;

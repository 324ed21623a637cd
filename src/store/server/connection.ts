/** Database URLs: their connection parameters, and error messages for operators. */
import type pg from 'pg';
import { OperatorError } from '../../base/operator-error.ts';
import { hasUnescapedPassword } from '../../base/url-parts.ts';

export function connectionOf(url: string, variable: string): pg.ClientConfig {
  if (
    !URL.canParse(url) ||
    !/^postgres(ql)?:$/.test(new URL(url).protocol) ||
    hasUnescapedPassword(new URL(url))
  ) {
    throw new OperatorError(
      `${variable} is not a PostgreSQL URL.`,
      'Write it as postgresql://user:password@host:5432/database, with special characters percent-encoded.',
    );
  }
  // In the driver, `options` of the URL would replace ours, which searches and statistics rely on. Both must apply.
  const withoutOptions = new URL(url);
  const options = withoutOptions.searchParams.get('options') ?? '';
  withoutOptions.searchParams.delete('options');
  return { connectionString: withoutOptions.href, options };
}

export function explainConnectionFailure(error: unknown, url: string, variable: string): unknown {
  if (error instanceof OperatorError) return error;
  const { host, pathname } = new URL(url);
  // An AggregateError, of several addresses that were tried, has no message.
  const { message, code } = error as Error & { code?: string };
  return new OperatorError(
    `Cannot use the database ${pathname.slice(1)} at ${host || 'the local socket'}: ${message || code || String(error)}`,
    `Check ${variable}, that the server runs and lets this user in, and that the database exists.`,
    { cause: error },
  );
}

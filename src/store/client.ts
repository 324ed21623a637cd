import type pg from 'pg';

/**
 * Lends a connection of a pool for some work. One that breaks meanwhile, or may still have an answer to come, does not go
 * back; and while it is lent somebody hears its errors, which would end the process otherwise.
 */
export async function withClient<T>(pool: pg.Pool, use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken = false;
  const onError = () => {
    broken = true;
  };
  client.on('error', onError);
  try {
    return await use(client);
  } catch (error) {
    // The server's last word on a connection. It hangs up right after; until then the pool would hand it out.
    if (/^(08|57P)/.test(String((error as { code?: unknown } | undefined)?.code))) broken = true;
    // Its answer may still come, and would be taken for the answer to the next question.
    if (/Query read timeout/.test(String((error as Error | undefined)?.message))) broken = true;
    throw error;
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}

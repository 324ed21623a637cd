/**
 * The base path: the prefix of all URLs of a server that is hosted below a path, such as `/lanescan`; empty at the root.
 *
 * The prefix is removed before routing. Requests without it are answered too: a proxy may have removed it, and probes ask
 * the server directly. Pages and documents name the prefix in their links, whatever a request had.
 */
import type { FastifyInstance } from 'fastify';

/** The URL as routes know it. */
export function withoutBasePath(url: string, basePath: string): string {
  if (!url.startsWith(basePath)) return url;
  const rest = url.slice(basePath.length);
  if (rest.startsWith('/')) return rest;
  return rest === '' || rest.startsWith('?') ? `/${rest}` : url;
}

/** Redirects `/lanescan` to `/lanescan/`, so that each page has one address. */
export function registerBasePathRedirect(app: FastifyInstance, basePath: string): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { originalUrl, method } = request;
    const [path, query] = splitQuery(originalUrl);
    if (path !== basePath || (method !== 'GET' && method !== 'HEAD')) return done();
    reply.redirect(`${basePath}/${query}`, 308);
  });
}

function splitQuery(url: string): readonly [path: string, query: string] {
  const start = url.indexOf('?');
  return start === -1 ? [url, ''] : [url.slice(0, start), url.slice(start)];
}

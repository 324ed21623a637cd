/** Registers the declared routes with Fastify: content negotiation, conditional requests, 404. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ApiError } from '../../domain/errors.ts';
import { matchingTag } from './caching.ts';
import { type ReserveBody, sendError, sendNotModified, sendResponse } from './responses.ts';
import { mediaTypesOf, pathsOf, type RouteContext, type ServedPath } from './route.ts';
import { type RequestSignals, routeRequest } from './route-request.ts';

/** A path in an error message is cut at this length. */
const SHOWN_PATH_LENGTH = 200;

export function registerRoutes(
  app: FastifyInstance,
  options: {
    readonly routes: readonly ServedPath[];
    /** For browsers, in place of the error as JSON. */
    readonly notFoundPage: ServedPath | undefined;
    readonly basePath: string;
    readonly context: RouteContext;
    readonly signals: RequestSignals;
    readonly reserveBody: ReserveBody;
  },
): void {
  const { routes, notFoundPage, basePath, context, signals, reserveBody } = options;
  app.setErrorHandler(sendError);
  app.setNotFoundHandler(async (request, reply) => {
    if (!notFoundPage || !isPageRequest(request)) throw notFoundError(request, basePath);
    const response = await notFoundPage.handle(routeRequest(request, reply, signals), context);
    return sendResponse(request, reply, notFoundPage, response, reserveBody);
  });
  for (const route of routes) {
    for (const path of pathsOf(route)) {
      app.route({
        method: ['GET', 'HEAD'],
        url: path.replace(/\{(\w+)\}/g, ':$1'),
        config: { route },
        handler: async (request, reply) => {
          checkAcceptable(request, mediaTypesOf(route));
          const asked = routeRequest(request, reply, signals);
          const ifNoneMatch = request.headers['if-none-match'];
          if (route.validate && ifNoneMatch !== undefined) {
            const current = await route.validate(asked, context);
            const tag = current && matchingTag(ifNoneMatch, current.validator);
            if (current && tag !== undefined) return sendNotModified(reply, route, tag, current.freshness);
          }
          return sendResponse(request, reply, route, await route.handle(asked, context), reserveBody);
        },
      });
    }
  }
}

/** The registered path of a request; undefined for a 404. */
export function servedPathOf(request: FastifyRequest): ServedPath | undefined {
  return (request.routeOptions.config as { route?: ServedPath }).route;
}

/** Whether a browser asks for a page. Clients of the API get errors as JSON, also where they accept everything. */
function isPageRequest({ method, url, headers }: FastifyRequest): boolean {
  const isRead = method === 'GET' || method === 'HEAD';
  return isRead && !/^\/+v2(\/|\?|$)/.test(url) && /\btext\/html\b/i.test(headers.accept ?? '');
}

export function notFoundError(request: FastifyRequest, basePath: string): ApiError {
  const [path = ''] = request.originalUrl.split('?');
  const shown = path.length > SHOWN_PATH_LENGTH ? `${path.slice(0, SHOWN_PATH_LENGTH)}…` : path;
  return new ApiError(
    'NOT_FOUND',
    `There is nothing at ${shown}. The paths of this service are listed at ${basePath}/docs.`,
  );
}

function checkAcceptable(request: FastifyRequest, mediaTypes: readonly string[]): void {
  const { accept } = request.headers;
  if (accept === undefined || accept.trim() === '') return;
  const isAcceptable = accept.split(',').some((range) => {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const isExcluded = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
    const includes = (type: string) => name === type || name === `${type.split('/')[0]}/*`;
    return !isExcluded && (name === '*/*' || mediaTypes.some(includes));
  });
  if (isAcceptable) return;
  throw new ApiError(
    'NOT_ACCEPTABLE',
    `This path answers in ${mediaTypes.join(' or ')}, which the Accept header excludes.`,
  );
}

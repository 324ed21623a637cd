/** Content codings: negotiation (Accept-Encoding) and compression. */
import { pipeline, type Readable } from 'node:stream';
import { promisify } from 'node:util';
import { brotliCompress, constants, createGzip, gzip } from 'node:zlib';

export type Coding = 'br' | 'gzip';

/** Shorter bodies are not compressed: the gain does not pay for the CPU time. */
const MIN_COMPRESSED_BYTES = 1_000;
/** Of 11. Higher qualities take many times as long for a few per cent. */
const BROTLI_QUALITY = 4;
const GZIP_LEVEL = 5;

/** In order of preference, where a client accepts several equally. */
const codings: readonly Coding[] = ['br', 'gzip'];

/** The coding for a body of this length; undefined: send it uncompressed. */
export function chooseCoding(
  acceptEncoding: string | undefined,
  bytes: number,
  among: readonly Coding[] = codings,
): Coding | undefined {
  if (acceptEncoding === undefined) return undefined;
  const weights = weightsOf(acceptEncoding);
  const weightOf = (coding: Coding) => weights.get(coding) ?? weights.get('*') ?? 0;
  // Unless excluded, the uncompressed body is acceptable, with a lower weight than any coding that is listed.
  const identity = weights.get('identity') ?? (weights.get('*') === 0 ? 0 : Number.MIN_VALUE);
  const best = among.reduce((one, other) => (weightOf(other) > weightOf(one) ? other : one));
  if (weightOf(best) === 0 || weightOf(best) < identity) return undefined;
  return bytes >= MIN_COMPRESSED_BYTES || identity === 0 ? best : undefined;
}

function weightsOf(acceptEncoding: string): ReadonlyMap<string, number> {
  const weights = new Map<string, number>();
  for (const part of acceptEncoding.split(',')) {
    const [name = '', ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith('q='));
    const value = weight === undefined ? 1 : Number(weight.slice(2));
    const coding = name === 'x-gzip' ? 'gzip' : name;
    if (coding !== '') weights.set(coding, value >= 0 && value <= 1 ? value : 0);
  }
  return weights;
}

export function compress(body: Buffer, coding: Coding): Promise<Buffer> {
  if (coding === 'gzip') return promisify(gzip)(body, { level: GZIP_LEVEL });
  const params = {
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
    [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
    [constants.BROTLI_PARAM_SIZE_HINT]: body.length,
  };
  return promisify(brotliCompress)(body, { params });
}

/** Streams are sent in gzip or uncompressed; brotli would buffer more of them. */
export function acceptsGzipStream(acceptEncoding: string | undefined): boolean {
  return chooseCoding(acceptEncoding, Number.POSITIVE_INFINITY, ['gzip']) === 'gzip';
}

/** Destroys the source when the reader disconnects, and fails when the source fails. */
export function gzipStream(source: Readable): Readable {
  return pipeline(source, createGzip({ level: GZIP_LEVEL }), () => undefined);
}

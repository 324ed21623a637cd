/** Content codings: which one a client takes, and bodies in it. */
import { pipeline, type Readable } from 'node:stream';
import { promisify } from 'node:util';
import { brotliCompress, constants, createGzip, gzip } from 'node:zlib';

export type Coding = 'br' | 'gzip';

/** Below this the gain does not pay for the work. */
const WORTHWHILE_BYTES = 1_000;
/** Of 11: beyond it brotli takes many times as long for a few per cent. */
const BROTLI_QUALITY = 4;
const GZIP_LEVEL = 5;

const compressions: Record<Coding, (body: Buffer) => Promise<Buffer>> = {
  br: (body) =>
    promisify(brotliCompress)(body, {
      params: {
        [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
        [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
        [constants.BROTLI_PARAM_SIZE_HINT]: body.length,
      },
    }),
  gzip: (body) => promisify(gzip)(body, { level: GZIP_LEVEL }),
};

/** Best first among those that a client likes equally. */
const codings: readonly Coding[] = ['br', 'gzip'];

/** The coding for a body of this length, undefined for none. */
export function chooseCoding(
  acceptEncoding: string | undefined,
  bytes: number,
  among: readonly Coding[] = codings,
): Coding | undefined {
  if (acceptEncoding === undefined) return undefined;
  const weights = weightsOf(acceptEncoding);
  const weightOf = (coding: Coding) => weights.get(coding) ?? weights.get('*') ?? 0;
  // Not named, a body as it is stays acceptable, but less welcome than what was named.
  const identity = weights.get('identity') ?? (weights.get('*') === 0 ? 0 : Number.MIN_VALUE);
  const best = among.reduce((one, other) => (weightOf(other) > weightOf(one) ? other : one));
  if (weightOf(best) === 0 || weightOf(best) < identity) return undefined;
  return bytes >= WORTHWHILE_BYTES || identity === 0 ? best : undefined;
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
  return compressions[coding](body);
}

/** Streams go out in gzip or as they are; brotli would hold back more of them. */
export function takesGzipStream(acceptEncoding: string | undefined): boolean {
  return chooseCoding(acceptEncoding, Number.POSITIVE_INFINITY, ['gzip']) === 'gzip';
}

/** Ends the source when its reader goes, and fails when the source does. */
export function gzipStream(source: Readable): Readable {
  return pipeline(source, createGzip({ level: GZIP_LEVEL }), () => undefined);
}

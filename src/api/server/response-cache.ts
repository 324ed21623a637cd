/**
 * Response cache (LRU), valid for one version of the store, which every write raises before it is acknowledged.
 *
 * A request for a cached response waits for a read of the version that began after the request arrived: a response made at
 * that version, or later, is what the database would return now. Concurrent requests share one such read, and one computation
 * of the response (single-flight). Only a URL that is requested a second time is cached and costs that read.
 */
import type { RouteResponse } from './caching.ts';
import type { Coding } from './compression.ts';

/** A response that can be sent many times. */
export type CacheableResponse = RouteResponse & { readonly body: Buffer; readonly validator: string };

const DEFAULT_CAPACITY_BYTES = 32 * 1024 * 1024;
const MAX_ENTRIES = 8_192;
/** For URLs that were requested once. */
const MAX_REMEMBERED_BYTES = 2 * 1024 * 1024;
/** Longer URLs are seldom requested twice, and remembering them costs memory. */
const MAX_URL_LENGTH = 1_000;
/** Overhead of an entry beside its key, headers and bodies: measured at about 1,200 bytes. */
const ENTRY_BYTES = 1_500;
/** Overhead of a buffer. */
const BUFFER_BYTES = 300;
/** Overhead of a key: the string object, and its slot in a set or map. */
const KEY_BYTES = 100;

interface Entry {
  readonly response: Promise<CacheableResponse>;
  bytes: number;
}

export type ResponseCache = ReturnType<typeof createResponseCache>;

/**
 * @param version the version of the store, read from the database after the call; undefined where that is not possible
 * @param capacityBytes memory for all that is cached: keys, headers, compressed copies and the overhead of objects count too
 */
export function createResponseCache(
  version: () => Promise<string | undefined>,
  capacityBytes = DEFAULT_CAPACITY_BYTES,
) {
  const rememberedUrls = new Set<string>();
  let rememberedBytes = 0;
  /** In the order of their latest use, least recently used first. */
  const entries = new Map<string, Entry>();
  /** The version of all entries. Entries of another version are never used again. */
  let entriesVersion: string | undefined;
  let entriesBytes = 0;

  /** Remembers the URL; whether it was not remembered before. */
  const isFirstRequest = (url: string): boolean => {
    if (rememberedUrls.has(url)) return false;
    if (rememberedBytes >= MAX_REMEMBERED_BYTES) {
      // As a whole: a Set finds its oldest member only by skipping all deleted ones.
      rememberedUrls.clear();
      rememberedBytes = 0;
    }
    rememberedUrls.add(url);
    rememberedBytes += keyBytes(url);
    return true;
  };

  /** Adds to the size of an entry and evicts others to make room; an evicted entry does not count. */
  const grow = (url: string, entry: Entry, bytes: number) => {
    if (entries.get(url) !== entry) return;
    entry.bytes += bytes;
    entriesBytes += bytes;
    for (const [leastRecentlyUsed, { bytes: freedBytes }] of entries) {
      if (entriesBytes <= capacityBytes && entries.size <= MAX_ENTRIES) break;
      entriesBytes -= freedBytes;
      entries.delete(leastRecentlyUsed);
    }
  };

  const add = (url: string, make: () => Promise<CacheableResponse>): Promise<CacheableResponse> => {
    const compressed: Partial<Record<Coding, Buffer>> = {};
    const response = make().then((made) => ({
      ...made,
      compressed,
      onCompressed(coding: Coding, coded: Buffer) {
        if (compressed[coding]) return;
        // A copy: a compressor may return a small part of a large buffer, which would stay in memory as a whole.
        compressed[coding] = Buffer.from(new Uint8Array(coded).buffer);
        grow(url, entry, coded.length + BUFFER_BYTES);
      },
    }));
    const entry: Entry = { response, bytes: 0 };
    entries.set(url, entry);
    grow(url, entry, ENTRY_BYTES + keyBytes(url));
    response.then(
      ({ body, headers }) => grow(url, entry, body.length + BUFFER_BYTES + headersBytes(headers)),
      () => {
        if (entries.get(url) !== entry) return;
        entriesBytes -= entry.bytes;
        entries.delete(url);
      },
    );
    return response;
  };

  return {
    /** Memory of all cached responses and remembered URLs, an estimate on the safe side. */
    get bytes() {
      return entriesBytes + rememberedBytes;
    },

    /** The response for a URL: from the cache, or made now. */
    async get(url: string, make: () => Promise<CacheableResponse>): Promise<CacheableResponse> {
      if (url.length > MAX_URL_LENGTH || isFirstRequest(url)) return make();
      // While the version is unknown, no entry can be trusted.
      const current = await version();
      if (current === undefined) return make();
      if (current !== entriesVersion) {
        entriesVersion = current;
        entries.clear();
        entriesBytes = 0;
      }
      const found = entries.get(url);
      if (!found) return add(url, make);
      entries.delete(url);
      entries.set(url, found);
      return found.response;
    },
  };
}

/** A URL takes one byte a character. */
function keyBytes(url: string): number {
  return url.length + KEY_BYTES;
}

function headersBytes(headers: RouteResponse['headers'] = {}): number {
  return Object.entries(headers).reduce((bytes, [, value]) => bytes + value.length + KEY_BYTES, 0);
}

/**
 * Response cache (LRU), valid for one version of the store.
 *
 * Every write raises the version of the store before it is acknowledged. A request for a cached response waits for a read
 * of the version that began after the request arrived: a response made at that version, or later, is what the database
 * would return now. Concurrent requests share one read of the version, and one computation of the response
 * (single-flight).
 *
 * Only a URL that is requested a second time is cached and costs that read: a series of different searches bypasses the
 * cache.
 *
 * The capacity is of memory, not of bodies: keys, headers, compressed copies and the overhead of objects count too.
 */
import type { RouteResponse } from './caching.ts';
import type { Coding } from './compression.ts';

/** A response that can be sent many times. */
export type CacheableResponse = RouteResponse & { readonly body: Buffer; readonly validator: string };

const DEFAULT_CAPACITY_BYTES = 32 * 1024 * 1024;
const MAX_ENTRIES = 8_192;
/** URLs that were requested recently: two generations, each with at most so many URLs and so many bytes. */
const MAX_REMEMBERED_URLS = 4_096;
const MAX_REMEMBERED_BYTES = 1024 * 1024;
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
 * @param capacityBytes memory for all that is cached
 */
export function createResponseCache(
  version: () => Promise<string | undefined>,
  capacityBytes = DEFAULT_CAPACITY_BYTES,
) {
  const recent = createRecentUrls();
  /** In the order of their latest use, least recently used first. */
  const entries = new Map<string, Entry>();
  /** The version of all entries. Entries of another version are never used again. */
  let entriesVersion: string | undefined;
  let entriesBytes = 0;

  const moveToVersion = (current: string) => {
    if (current === entriesVersion) return;
    entriesVersion = current;
    entries.clear();
    entriesBytes = 0;
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
      return entriesBytes + recent.bytes;
    },

    /** The response for a URL: from the cache, or made now. */
    async get(url: string, make: () => Promise<CacheableResponse>): Promise<CacheableResponse> {
      if (url.length > MAX_URL_LENGTH || recent.isFirstRequest(url)) return make();
      // While the version is unknown, no entry can be trusted.
      const current = await version();
      if (current === undefined) return make();
      moveToVersion(current);
      const found = entries.get(url);
      if (!found) return add(url, make);
      entries.delete(url);
      entries.set(url, found);
      return found.response;
    },
  };
}

/** The URLs that were requested recently, in two generations: the older one is dropped as a whole. */
function createRecentUrls() {
  let newer = new Set<string>();
  let older = new Set<string>();
  let newerBytes = 0;
  let olderBytes = 0;
  return {
    get bytes() {
      return newerBytes + olderBytes;
    },
    /** Remembers the URL; whether it was not remembered before. */
    isFirstRequest(url: string): boolean {
      if (newer.has(url)) return false;
      const isFirst = !older.has(url);
      if (newer.size >= MAX_REMEMBERED_URLS || newerBytes >= MAX_REMEMBERED_BYTES) {
        // As a whole: a Set finds its oldest member only by skipping all deleted ones.
        older = newer;
        olderBytes = newerBytes;
        newer = new Set();
        newerBytes = 0;
      }
      newer.add(url);
      newerBytes += keyBytes(url);
      return isFirst;
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

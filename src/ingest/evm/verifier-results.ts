/**
 * Verifications before they are on chain, from a service that collects what verifiers publish.
 *
 * Nothing proves what it says: that is up to the off-ramp. It is believed to be wrong in every way an answer can be,
 * so that at worst one message is said to be verified too early.
 */

import { ResponseTooLongError, readBody, withDeadline } from '../../base/bounded-exchange.ts';
import { basicAuthorization } from '../../base/http-headers.ts';
import { withoutCredentials } from '../../base/url-parts.ts';
import { parseAddress, zeroAddresses } from '../../domain/addresses.ts';

export interface VerifierResult {
  /** The verifier's address on the source chain or, where that is no EVM chain, on the destination. */
  readonly verifier: string;
  /** `0x` and lower-case digits. */
  readonly data: string;
  /** ISO 8601; null where the service does not say when. */
  readonly at: string | null;
}

export type VerifierResults = ReturnType<typeof createVerifierResults>;

/** For one question, to the last byte of its answer. */
const USUAL_TIMEOUT_MS = 10_000;
/** Each result comes with the whole message, and a message has few verifiers. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
const MAX_RESULTS = 64;
/** Signatures and proofs; they end up in the record. */
const MAX_DATA_BYTES = 16 * 1024;
/** There was no such protocol before; Go writes the year 1 for a time that is not known. */
const EARLIEST_TIME = Date.UTC(2020, 0, 1);

/**
 * @param base what stands in front of `/v1/verifierresults`
 * @example await createVerifierResults(new URL('https://indexer.example'), options).completed('0x…')
 */
export function createVerifierResults(
  base: URL,
  options: { readonly userAgent: string; readonly signal: AbortSignal; readonly timeoutMs?: number },
) {
  const { userAgent, signal, timeoutMs = USUAL_TIMEOUT_MS } = options;
  const authorization = basicAuthorization(base);
  const headers = {
    Accept: 'application/json',
    'User-Agent': userAgent,
    ...(authorization !== null && { Authorization: authorization }),
  };
  const failure = (problem: string) =>
    new Error(`The verifier results of ${base.host} cannot be used: ${problem}`);

  /** Undefined where the service knows nothing. */
  const ask = (messageId: string) =>
    withDeadline(signal, async (deadline): Promise<unknown> => {
      deadline.restart(timeoutMs, new UnusableAnswer(`no whole answer within ${timeoutMs / 1000} s`));
      const url = withoutCredentials(base);
      url.pathname = `${base.pathname.replace(/\/+$/, '')}/v1/verifierresults/${messageId}`;
      const response = await fetch(url, { redirect: 'manual', headers, signal: deadline.signal });
      if (response.status === 200)
        return JSON.parse(new TextDecoder().decode(await readBody(response, MAX_ANSWER_BYTES)));
      await response.body?.cancel();
      if (response.status === 404) return undefined;
      throw new UnusableAnswer(`it answered ${response.status}`);
    });

  return {
    /** Empty for a message that the service does not know (yet); throws where it does not answer as it should. */
    async completed(messageId: string): Promise<readonly VerifierResult[]> {
      try {
        const answer = await ask(messageId);
        return answer === undefined ? [] : parseResults(answer, messageId);
      } catch (error) {
        signal.throwIfAborted();
        throw failure(problemOf(error));
      }
    },
  };
}

class UnusableAnswer extends Error {}

/** Never the words of fetch: they may hold the URL, which may hold a secret. */
function problemOf(error: unknown): string {
  if (error instanceof UnusableAnswer || error instanceof ResponseTooLongError) return error.message;
  if (error instanceof SyntaxError) return 'it answered with broken JSON';
  const { cause } = error as Error & { cause?: { code?: string } };
  return `no connection (${cause?.code ?? 'lost'})`;
}

function parseResults(answer: unknown, messageId: string): readonly VerifierResult[] {
  const { success, results, messageID } = membersOf(answer, 'the answer');
  if (success !== true) throw new UnusableAnswer('it reports a failure of its own');
  if (!isAbout(messageID, messageId)) throw new UnusableAnswer('it answered about another message');
  // Go writes null for a list without elements.
  if (results === null || results === undefined) return [];
  if (!Array.isArray(results)) throw new UnusableAnswer('`results` is no list');
  if (results.length > MAX_RESULTS) throw new UnusableAnswer(`there are more than ${MAX_RESULTS} results`);
  return results.flatMap((result: unknown, index) => {
    const { verifierResult } = membersOf(result, `results[${index}]`);
    return parseResult(verifierResult, `results[${index}].verifierResult`, messageId);
  });
}

function parseResult(result: unknown, where: string, messageId: string): readonly VerifierResult[] {
  const members = membersOf(result, where);
  if (!isAbout(members.message_id, messageId)) throw new UnusableAnswer(`${where} is about another message`);
  const verifier =
    evmAddressOf(members.verifier_source_address) ?? evmAddressOf(members.verifier_dest_address);
  if (verifier === undefined) throw new UnusableAnswer(`${where} names no verifier on an EVM chain`);
  const { ccv_data: data } = members;
  if (typeof data !== 'string' || data.length > 2 + 2 * MAX_DATA_BYTES || !/^0x([0-9a-f]{2})*$/i.test(data)) {
    throw new UnusableAnswer(`${where}.ccv_data is not hex of at most ${MAX_DATA_BYTES} bytes`);
  }
  // Without data there is nothing to show to the off-ramp: the verifier is not done.
  return data === '0x' ? [] : [{ verifier, data: data.toLowerCase(), at: timeOf(members.timestamp) }];
}

/** Older answers do not repeat the id. */
function isAbout(told: unknown, messageId: string): boolean {
  return told === undefined || (typeof told === 'string' && told.toLowerCase() === messageId.toLowerCase());
}

function evmAddressOf(text: unknown): string | undefined {
  const address = typeof text === 'string' ? parseAddress(text, 'EVM')?.text : undefined;
  return address === zeroAddresses.EVM ? undefined : address;
}

function timeOf(text: unknown): string | null {
  const time = typeof text === 'string' ? Date.parse(text) : Number.NaN;
  return time >= EARLIEST_TIME && time <= Date.now() ? new Date(time).toISOString() : null;
}

function membersOf(value: unknown, where: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new UnusableAnswer(`${where} is no object`);
  }
  return value as Readonly<Record<string, unknown>>;
}

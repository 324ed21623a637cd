import { CCIPError, type SdkError } from '../lab/sdk.ts';

/** The error with which the official client fails. */
export async function clientErrorOf(promise: Promise<unknown>): Promise<SdkError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason) => reason,
  );
  if (!CCIPError.isCCIPError(error)) throw new Error(`Not an error of the client: ${error}`);
  return error;
}

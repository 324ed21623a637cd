/** Where the server is: the prefix of its paths (empty at the root of its host), and its URL with that prefix. */
export const basePath =
  document.querySelector<HTMLMetaElement>('meta[name="lanescan-base-path"]')?.content ?? '';

/** As commands and SDKs take it: the part before /v2. */
export const serverUrl = `${location.origin}${basePath}`;

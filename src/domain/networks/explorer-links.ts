/** Links to pages of block explorers. Without the table of them: the web app gets the URLs from the API. */

/** URLs with `{}` where the hash, address or number goes; null where the explorer has no such page. */
export interface ExplorerUrls {
  readonly transaction: string | null;
  readonly address: string | null;
  readonly block: string | null;
  readonly token: string | null;
}
export type ExplorerPage = keyof ExplorerUrls;

/** The link to one page; null where the network has none. The value is escaped: it can come from a record. */
export function explorerLink(
  urls: ExplorerUrls | null | undefined,
  page: ExplorerPage,
  value: string | number,
): string | null {
  const url = urls?.[page];
  return url === null || url === undefined ? null : url.replace('{}', () => encodeURIComponent(value));
}

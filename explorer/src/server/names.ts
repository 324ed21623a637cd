/**
 * Names of tokens and addresses, and links to block explorers.
 *
 * A cache of tokens that pages share: components say which addresses they show, requests are made for many at once, and
 * everything is rendered with its names as they arrive.
 */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { addressBytes } from '../../../src/domain/addresses.ts';
import {
  createNames,
  type NamedAddress,
  type NamedToken,
  type Names,
} from '../../../src/domain/names/message-names.ts';
import type { ExplorerUrls } from '../../../src/domain/networks/block-explorers.ts';
import { api } from './api-client.ts';
import { createStore } from './store.ts';

/** Components that are rendered together ask together. */
const COLLECT_MS = 15;

const tokens = new Map<string, NamedToken>();
const requested = new Set<string>();
let waiting: string[] = [];
let labels: readonly NamedAddress[] = [];
let areLabelsRequested = false;
const names = createStore<Names>(createNames([], []));

function publish(): void {
  names.set(createNames([...tokens.values()], labels));
}

function request(addresses: readonly string[]): void {
  if (!areLabelsRequested) {
    areLabelsRequested = true;
    void api.labels().then(
      ({ data }) => {
        labels = data;
        if (data.length > 0) publish();
      },
      () => {
        areLabelsRequested = false;
      },
    );
  }
  const unknown = addresses.filter((address) => !requested.has(address) && addressBytes(address).length > 0);
  if (unknown.length === 0) return;
  if (waiting.length === 0) setTimeout(flush, COLLECT_MS);
  for (const address of unknown) {
    requested.add(address);
    waiting.push(address);
  }
}

function flush(): void {
  const addresses = waiting;
  waiting = [];
  void api.tokens(addresses).then(
    (found) => {
      for (const token of found) tokens.set(`${token.chainSelector}:${token.address}`, token);
      if (found.length > 0) publish();
    },
    () => {
      for (const address of addresses) requested.delete(address);
    },
  );
}

/** Names, with those of these tokens as soon as they are known. */
export function useNames(tokenAddresses: readonly string[] = []): Names {
  useEffect(() => request(tokenAddresses));
  return names.use();
}

/** Block explorers change when the server starts anew. */
const linksQuery = queryOptions({
  queryKey: ['block-explorers'],
  queryFn: async ({ signal }) => {
    const { data } = await api.networks({ active: true }, signal);
    return new Map(data.map(({ chainSelector, explorerUrls }) => [chainSelector, explorerUrls]));
  },
  staleTime: Number.POSITIVE_INFINITY,
});

/** The pages of a network's block explorer; null where none is known. */
export function useExplorerUrls(chainSelector: string): ExplorerUrls | null {
  return useQuery(linksQuery).data?.get(chainSelector) ?? null;
}

/** Text with addresses in it: each leads to the search for it. */
import { Link } from '@tanstack/react-router';
import { Fragment } from 'react';
import { addressBytes } from '../../../src/domain/addresses.ts';

const ADDRESS = /(\b0x[0-9a-fA-F]{40}\b|\b[1-9A-HJ-NP-Za-km-z]{32,44}\b)/;

/** @param text already printable */
export function AddressText({ text }: { readonly text: string }) {
  return text.split(ADDRESS).map((part, index) =>
    // Every second part is what the expression found.
    index % 2 === 1 && addressBytes(part).length > 0 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts of a text have no other key.
      <AddressLink key={index} address={part} />
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts of a text have no other key.
      <Fragment key={index}>{part}</Fragment>
    ),
  );
}

function AddressLink({ address }: { readonly address: string }) {
  return (
    <Link to="/" search={{ q: address }} className="address-link" title={`Search messages with ${address}`}>
      {address}
    </Link>
  );
}

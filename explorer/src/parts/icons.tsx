/** Icons on a grid of 16. They are decorative: a word or a label always goes with each. */

const paths = {
  search: 'M7 12.5a5.5 5.5 0 1 1 0-11 5.5 5.5 0 0 1 0 11Zm4-1.5 3.5 3.5',
  copy: 'M5.5 5.500v-3a1 1 0 0 1 1-1h7a1 1 0 0 1 1 1v7a1 1 0 0 1-1 1h-3M2.5 5.500h7a1 1 0 0 1 1 1v7a1 1 0 0 1-1 1h-7a1 1 0 0 1-1-1v-7a1 1 0 0 1 1-1Z',
  tick: 'm3 8.5 3.2 3.200L13 4.5',
  close: 'm4 4 8 8m0-8-8 8',
  down: 'm4 6.2 4 4 4-4',
  right: 'M2.5 8h10.500M9 4l4 4-4 4',
  left: 'M13.5 8H3M7 4 3 8l4 4',
  sun: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1v1.300m0 11.400V15M1 8h1.300m11.4 0H15M3 3l1 1m8 8 1 1m0-10-1 1m-8 8-1 1',
  moon: 'M13.5 9.700A6 6 0 0 1 6.3 2.500a6 6 0 1 0 7.2 7.200Z',
  system: 'M2 2.500h12v8.500H2zM5.5 14h5M8 11v3',
  export: 'M8 1.500v8.500m-3.5-3.500L8 10l3.5-3.500M2 11.500v2a1 1 0 0 0 1 1h10a1 1 0 0 0 1-1v-2',
  code: 'm5 4.5-3.5 3.500L5 11.500m6-7L14.5 8 11 11.500M9.3 2.500l-2.6 11',
  hand: 'M8 4.500v4m0 2.600v.1M8 1.200c.5 0 .9.2 1.1.600l6 10.700c.5.9-.1 2-1.1 2H2c-1 0-1.6-1.1-1.1-2l6-10.700c.2-.4.6-.6 1.1-.600Z',
  info: 'M8 14.500a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM8 7.300v4M8 4.800v.1',
  out: 'M6.5 3H3v10h10V9.500M9.500 2.500h4v4M13.200 2.800 7.500 8.500',
  up: 'M8 13.500V3m-4.5 4.500L8 3l4.5 4.5',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

export function Brand() {
  return (
    <svg className="brand-mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect className="brand-ground" width="32" height="32" rx="8" />
      <path className="brand-lane" d="M7 11h18M7 21h18" />
      <circle className="brand-message" cx="20" cy="11" r="4" />
      <circle className="brand-message" cx="12" cy="21" r="4" />
    </svg>
  );
}

/** The filter bar: a chip for each filter, with a clear button once it is set. */
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { addressBytes } from '../../../src/domain/addresses.ts';
import type { FilterName } from '../../../src/domain/filters/filter-table.ts';
import { allNetworks, findNetworks, type NamedNetwork } from '../../../src/domain/filters/search-text.ts';
import { type Status, statuses } from '../../../src/domain/lifecycle.ts';
import { networkBySelector } from '../../../src/domain/networks/networks.ts';
import { grouped, shortHash } from '../../../src/text/format.ts';
import { statusWords } from '../../../src/text/message-words.ts';
import { Icon } from '../parts/icons.tsx';
import { NetworkMark } from '../parts/network.tsx';
import { type Option, useOptionList } from '../parts/option-list.tsx';
import { Popover } from '../parts/popover.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { serverNow } from '../server/clock.ts';
import { filterLabels, filterNames, filtersOf, hasFilters, type SearchView } from '../server/search-view.ts';
import { useKnownNetworks } from './search-box.tsx';

type Change = Readonly<Partial<Record<FilterName, string | undefined>>>;

interface FilterBarProps {
  readonly view: SearchView;
  readonly onChange: (change: Change) => void;
}

/** Filters with a control below. The others have no chip until the search box or a link sets them. */
const controlled: ReadonlySet<FilterName> = new Set([
  'sourceChainSelector',
  'destChainSelector',
  'chainSelector',
  'status',
  'sentAfter',
  'sentBefore',
  'sender',
  'receiver',
  'sourceTokenAddress',
  'readyForManualExecOnly',
]);

export function FilterBar({ view, onChange }: FilterBarProps) {
  return (
    <section className="filters" aria-label="Filters">
      <NetworkChip name="sourceChainSelector" view={view} onChange={onChange} />
      <NetworkChip name="destChainSelector" view={view} onChange={onChange} />
      {view.chainSelector !== undefined && (
        <NetworkChip name="chainSelector" view={view} onChange={onChange} />
      )}
      <StatusChip view={view} onChange={onChange} />
      <TimeChip view={view} onChange={onChange} />
      <AddressChip name="sender" view={view} onChange={onChange} />
      <AddressChip name="receiver" view={view} onChange={onChange} />
      <AddressChip name="sourceTokenAddress" view={view} onChange={onChange} />
      <button
        type="button"
        className="chip chip-action"
        aria-pressed={view.readyForManualExecOnly === 'true'}
        onClick={() =>
          onChange({ readyForManualExecOnly: view.readyForManualExecOnly === 'true' ? undefined : 'true' })
        }
      >
        <Icon name="hand" />
        {filterLabels.readyForManualExecOnly}
      </button>
      {filterNames.map((name) => {
        const value = view[name];
        if (value === undefined || controlled.has(name)) return null;
        const label = filterLabels[name];
        return (
          <Chip key={name} label={label} onClear={() => onChange({ [name]: undefined })}>
            <span className="chip-static">
              {label} <code title={value}>{value.split(',').map(shortHash).join(', ')}</code>
            </span>
          </Chip>
        );
      })}
      {hasFilters(view) && (
        <button
          type="button"
          className="clear-all"
          onClick={() =>
            onChange(Object.fromEntries(Object.keys(filtersOf(view)).map((name) => [name, undefined])))
          }
        >
          Clear all
        </button>
      )}
    </section>
  );
}

/** The layout of a filter. The elements stay the same when it is set, so that an open panel stays open. */
function Chip({
  label,
  isSet = true,
  onClear,
  children,
}: {
  readonly label: string;
  readonly isSet?: boolean;
  readonly onClear: () => void;
  readonly children: ReactNode;
}) {
  return (
    <span className={isSet ? 'chip-set' : 'chip-unset'}>
      {children}
      {isSet && (
        <button
          type="button"
          className="chip-clear"
          aria-label={`Clear ${label}`}
          title={`Clear ${label}`}
          onClick={onClear}
        >
          <Icon name="close" />
        </button>
      )}
    </span>
  );
}

function ChipPopover({
  label,
  value,
  onClear,
  children,
}: {
  readonly label: string;
  /** The value that is set; undefined where the filter is not set. */
  readonly value: ReactNode;
  readonly onClear: () => void;
  readonly children: (close: () => void) => ReactNode;
}) {
  const isSet = value !== undefined;
  return (
    <Chip label={label} isSet={isSet} onClear={onClear}>
      <Popover
        className={isSet ? 'chip-static' : 'chip'}
        title={`Filter by ${label.toLowerCase()}`}
        label={
          <>
            {label}
            {isSet ? <span className="chip-value">{value}</span> : <Icon name="down" />}
          </>
        }
      >
        {children}
      </Popover>
    </Chip>
  );
}

// ---- Networks

function NetworkChip({
  name,
  view,
  onChange,
}: FilterBarProps & { readonly name: 'sourceChainSelector' | 'destChainSelector' | 'chainSelector' }) {
  const selector = view[name];
  const isBuiltIn = selector === undefined || networkBySelector(selector) !== undefined;
  const defined = useKnownNetworks(!isBuiltIn).find((network) => network.selector === selector);
  const displayName =
    selector === undefined
      ? undefined
      : (networkBySelector(selector)?.displayName ?? defined?.displayName ?? selector);
  return (
    <ChipPopover
      label={filterLabels[name]}
      value={
        displayName === undefined ? undefined : (
          <span className="network">
            <NetworkMark name={displayName} seed={selector ?? ''} />
            <bdi>{displayName}</bdi>
          </span>
        )
      }
      onClear={() => onChange({ [name]: undefined })}
    >
      {(close) => (
        <NetworkPicker
          onPick={(network) => {
            onChange({ [name]: network.selector });
            close();
          }}
        />
      )}
    </ChipPopover>
  );
}

const MAX_LISTED = 60;

function NetworkPicker({ onPick }: { readonly onPick: (network: NamedNetwork) => void }) {
  const [text, setText] = useState('');
  const known = useKnownNetworks(true);
  const traffic = new Map(known.map(({ selector, messages }) => [selector, messages]));
  const found = text.trim() === '' ? allNetworks(known) : findNetworks(text, known);
  const options = found.slice(0, MAX_LISTED).map(
    (network): Option<NamedNetwork> => ({
      key: network.selector,
      value: network,
      content: (
        <>
          <span className="option-value">
            <span className="network">
              <NetworkMark name={network.displayName} seed={network.selector} />
              <bdi>{network.displayName}</bdi>
            </span>
          </span>
          <span className="option-role">
            {traffic.has(network.selector) ? grouped(traffic.get(network.selector) ?? 0) : ''}
          </span>
        </>
      ),
    }),
  );
  const { fieldProps, onKeyDown, list, reset } = useOptionList(options, onPick);
  return (
    <div className="picker">
      <FirstField
        {...fieldProps}
        type="search"
        value={text}
        aria-label="Find a network by name, chain id or selector"
        placeholder="Name, chain id or selector"
        onChange={({ target }) => {
          setText(target.value);
          reset();
        }}
        onKeyDown={onKeyDown}
      />
      {list('Networks')}
      {options.length === 0 && <p className="picker-hint">No network is called that.</p>}
    </div>
  );
}

/** A field that takes the focus when its panel opens. */
function FirstField(properties: React.ComponentProps<'input'>) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus({ preventScroll: true }), []);
  return <input {...properties} ref={field} className="field" />;
}

// ---- Status

function StatusChip({ view, onChange }: FilterBarProps) {
  const chosen = (view.status?.split(',') ?? []) as readonly Status[];
  const toggle = (status: Status) => {
    const next = statuses.filter((one) => (one === status ? !chosen.includes(one) : chosen.includes(one)));
    onChange({ status: next.length === 0 ? undefined : next.join(',') });
  };
  const words = chosen.map((status) => statusWords[status] ?? status);
  return (
    <ChipPopover
      label={filterLabels.status}
      value={
        view.status === undefined
          ? undefined
          : words.length > 2
            ? `${words.length} of ${statuses.length}`
            : words.join(', ')
      }
      onClear={() => onChange({ status: undefined })}
    >
      {() => (
        <fieldset className="choices">
          <legend className="visually-hidden">Statuses</legend>
          {statuses.map((status) => (
            <label key={status} className="choice">
              <input type="checkbox" checked={chosen.includes(status)} onChange={() => toggle(status)} />
              <StatusBadge status={status} />
            </label>
          ))}
        </fieldset>
      )}
    </ChipPopover>
  );
}

// ---- Time

const HOUR = 3_600_000;
const spans = [
  ['Last hour', HOUR],
  ['Last 24 hours', 24 * HOUR],
  ['Last 7 days', 7 * 24 * HOUR],
  ['Last 30 days', 30 * 24 * HOUR],
] as const;

function TimeChip({ view, onChange }: FilterBarProps) {
  const { sentAfter, sentBefore } = view;
  const words = [
    ...(sentAfter === undefined ? [] : [`from ${minuteOf(sentAfter)}`]),
    ...(sentBefore === undefined ? [] : [`to ${minuteOf(sentBefore)}`]),
  ];
  return (
    <ChipPopover
      label="Time"
      value={words.length === 0 ? undefined : words.join(' ')}
      onClear={() => onChange({ sentAfter: undefined, sentBefore: undefined })}
    >
      {(close) => (
        <div className="picker">
          <div className="spans">
            {spans.map(([label, ms]) => (
              <button
                key={label}
                type="button"
                className="option"
                onClick={() => {
                  onChange({ sentAfter: wholeMinute(serverNow() - ms), sentBefore: undefined });
                  close();
                }}
              >
                {label}
              </button>
            ))}
          </div>
          <TimeFields view={view} onChange={onChange} close={close} />
        </div>
      )}
    </ChipPopover>
  );
}

function TimeFields({ view, onChange, close }: FilterBarProps & { readonly close: () => void }) {
  const [from, setFrom] = useState(fieldTime(view.sentAfter));
  const [to, setTo] = useState(fieldTime(view.sentBefore));
  const isBackwards = from !== '' && to !== '' && from >= to;
  return (
    <form
      className="time-fields"
      onSubmit={(event) => {
        event.preventDefault();
        if (isBackwards) return;
        onChange({ sentAfter: fromField(from), sentBefore: fromField(to) });
        close();
      }}
    >
      <label>
        From (UTC)
        <input
          type="datetime-local"
          className="field"
          value={from}
          onChange={({ target }) => setFrom(target.value)}
        />
      </label>
      <label>
        To (UTC)
        <input
          type="datetime-local"
          className="field"
          value={to}
          onChange={({ target }) => setTo(target.value)}
        />
      </label>
      {isBackwards && <p className="picker-hint problem">The end must come after the beginning.</p>}
      <button type="submit" className="button primary">
        Apply
      </button>
    </form>
  );
}

const wholeMinute = (time: number) => `${new Date(time).toISOString().slice(0, 16)}:00Z`;
const fromField = (text: string) => (text === '' ? undefined : `${text.slice(0, 16)}:00Z`);

/** `datetime-local` fields have no time zone; they show and take UTC, as the whole explorer does. */
function fieldTime(iso: string | undefined): string {
  const time = iso === undefined ? Number.NaN : Date.parse(iso);
  return Number.isNaN(time) ? '' : new Date(time).toISOString().slice(0, 16);
}

function minuteOf(iso: string): string {
  const time = fieldTime(iso);
  return time === '' ? iso : time.replace('T', ' ');
}

// ---- Addresses

function AddressChip({
  name,
  view,
  onChange,
}: FilterBarProps & { readonly name: 'sender' | 'receiver' | 'sourceTokenAddress' }) {
  const label = filterLabels[name];
  const value = view[name];
  return (
    <ChipPopover
      label={label}
      value={value === undefined ? undefined : <code title={value}>{shortHash(value)}</code>}
      onClear={() => onChange({ [name]: undefined })}
    >
      {(close) => (
        <AddressField
          label={label}
          value={value ?? ''}
          onApply={(address) => {
            onChange({ [name]: address });
            close();
          }}
        />
      )}
    </ChipPopover>
  );
}

function AddressField({
  label,
  value,
  onApply,
}: {
  readonly label: string;
  readonly value: string;
  readonly onApply: (address: string | undefined) => void;
}) {
  const [text, setText] = useState(value);
  const [isJudged, setJudged] = useState(false);
  const address = text.trim();
  const isWrong = isJudged && address !== '' && addressBytes(address).length === 0;
  return (
    <form
      className="picker address-field"
      onSubmit={(event) => {
        event.preventDefault();
        setJudged(true);
        if (address === '') onApply(undefined);
        else if (addressBytes(address).length > 0) onApply(address);
      }}
    >
      <FirstField
        type="text"
        value={text}
        aria-label={`${label} address`}
        aria-invalid={isWrong}
        placeholder="0x…, base58, TON, Canton party"
        autoComplete="off"
        spellCheck={false}
        onChange={({ target }) => {
          setText(target.value);
          setJudged(false);
        }}
      />
      <p className={`picker-hint${isWrong ? ' problem' : ''}`} role="status">
        {isWrong ? 'Not a valid address of any chain family.' : 'Any notation of any chain family.'}
      </p>
      <button type="submit" className="button primary">
        Apply
      </button>
    </form>
  );
}

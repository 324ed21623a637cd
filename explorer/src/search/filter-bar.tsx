/** The filter bar: a chip for each filter, with a clear button once it is set. */
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { addressBytes } from '../../../src/domain/addresses.ts';
import type { FilterName } from '../../../src/domain/filters/filter-table.ts';
import {
  allNetworks,
  findNetworks,
  type NamedNetwork as Known,
} from '../../../src/domain/filters/search-text.ts';
import { type Status, statuses } from '../../../src/domain/lifecycle.ts';
import { networkBySelector } from '../../../src/domain/networks/networks.ts';
import { grouped, shortHash } from '../../../src/text/format.ts';
import { statusWords } from '../../../src/text/message-words.ts';
import { type Option, Popover, useOptionList } from '../parts/controls.tsx';
import { Icon, NamedNetwork, StatusBadge } from '../parts/icons.tsx';
import { serverNow } from '../server/clock.ts';
import { filterLabels, filterNames, filtersOf, hasFilters, type SearchView } from '../server/search-view.ts';
import { OptionRow } from './lookup-match.tsx';
import { useKnownNetworks } from './search-box.tsx';

interface FilterBarProps {
  readonly view: SearchView;
  readonly onChange: (change: Readonly<Partial<Record<FilterName, string | undefined>>>) => void;
}

interface FilterProps extends FilterBarProps {
  readonly name: FilterName;
}

/** Filters with a control, in its order. The others have no chip until the search box or a link sets them. */
const controls: Partial<Record<FilterName, (props: FilterProps) => ReactNode>> = {
  sourceChainSelector: NetworkChip,
  destChainSelector: NetworkChip,
  chainSelector: (props) => props.view.chainSelector !== undefined && <NetworkChip {...props} />,
  status: StatusChip,
  sentAfter: TimeChip,
  // Part of the chip before.
  sentBefore: () => null,
  sender: AddressChip,
  receiver: AddressChip,
  sourceTokenAddress: AddressChip,
  readyForManualExecOnly: ActionChip,
};

export function FilterBar({ view, onChange }: FilterBarProps) {
  return (
    <section className="filters flow" aria-label="Filters">
      {(Object.keys(controls) as FilterName[]).map((name) => {
        const Control = controls[name] ?? OtherChip;
        return <Control key={name} name={name} view={view} onChange={onChange} />;
      })}
      {filterNames.map((name) =>
        controls[name] ? null : <OtherChip key={name} name={name} view={view} onChange={onChange} />,
      )}
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

interface ChipProps {
  readonly label: string;
  readonly onClear: () => void;
}

/** The layout of a filter. The elements stay the same when it is set, so that an open panel stays open. */
function Chip({
  label,
  isSet,
  onClear,
  children,
}: ChipProps & { readonly isSet: boolean; readonly children: ReactNode }) {
  const title = `Clear ${label}`;
  return (
    <span className={isSet ? 'chip-set' : 'chip-unset'}>
      {children}
      {isSet && (
        <button type="button" className="chip-clear" aria-label={title} title={title} onClick={onClear}>
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
}: ChipProps & {
  /** The value that is set; undefined where the filter is not set. */
  readonly value: ReactNode;
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

/** A filter that can only be cleared. */
function OtherChip({ name, view, onChange }: FilterProps) {
  const value = view[name];
  const label = filterLabels[name];
  if (value === undefined) return null;
  return (
    <Chip label={label} isSet onClear={() => onChange({ [name]: undefined })}>
      <span className="chip-static">
        {label} <code title={value}>{value.split(',').map(shortHash).join(', ')}</code>
      </span>
    </Chip>
  );
}

function ActionChip({ name, view, onChange }: FilterProps) {
  const isPressed = view[name] === 'true';
  return (
    <button
      type="button"
      className="chip chip-action"
      aria-pressed={isPressed}
      onClick={() => onChange({ [name]: isPressed ? undefined : 'true' })}
    >
      <Icon name="hand" />
      {filterLabels[name]}
    </button>
  );
}

// ---- Networks

function NetworkChip({ name, view, onChange }: FilterProps) {
  const selector = view[name];
  const builtIn = selector === undefined ? undefined : networkBySelector(selector);
  const isDefined = selector !== undefined && builtIn === undefined;
  const defined = useKnownNetworks(isDefined).find((network) => network.selector === selector);
  return (
    <ChipPopover
      label={filterLabels[name]}
      value={
        selector === undefined ? undefined : (
          <NamedNetwork name={(builtIn ?? defined)?.displayName ?? selector} selector={selector} />
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

function NetworkPicker({ onPick }: { readonly onPick: (network: Known) => void }) {
  const [text, setText] = useState('');
  const known = useKnownNetworks(true);
  const traffic = new Map(known.map(({ selector, messages }) => [selector, grouped(messages)]));
  const found = text.trim() === '' ? allNetworks(known) : findNetworks(text, known);
  const options = found.slice(0, MAX_LISTED).map(
    (network): Option<Known> => ({
      key: network.selector,
      value: network,
      content: (
        <OptionRow
          means={traffic.get(network.selector) ?? ''}
          value={<NamedNetwork name={network.displayName} selector={network.selector} />}
        />
      ),
    }),
  );
  const { fieldProps, onKeyDown, list, reset } = useOptionList(options, onPick);
  return (
    <div className="picker stack">
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

function StatusChip({ view, onChange }: FilterProps) {
  const chosen = (view.status?.split(',') ?? []) as readonly Status[];
  const toggle = (status: Status) => {
    const next = statuses.filter((one) => (one === status ? !chosen.includes(one) : chosen.includes(one)));
    onChange({ status: next.length === 0 ? undefined : next.join(',') });
  };
  const words =
    chosen.length > 2
      ? `${chosen.length} of ${statuses.length}`
      : chosen.map((status) => statusWords[status] ?? status).join(', ');
  return (
    <ChipPopover
      label={filterLabels.status}
      value={view.status === undefined ? undefined : words}
      onClear={() => onChange({ status: undefined })}
    >
      {() => (
        <fieldset className="choices">
          <legend className="visually-hidden">Statuses</legend>
          {statuses.map((status) => (
            <label key={status} className="choice line">
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
const spans = { 'Last hour': 1, 'Last 24 hours': 24, 'Last 7 days': 7 * 24, 'Last 30 days': 30 * 24 };

function TimeChip({ view, onChange }: FilterProps) {
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
        <TimePicker
          view={view}
          onChange={(change) => {
            onChange(change);
            close();
          }}
        />
      )}
    </ChipPopover>
  );
}

function TimePicker({ view, onChange }: FilterBarProps) {
  const [from, setFrom] = useState(fieldTime(view.sentAfter));
  const [to, setTo] = useState(fieldTime(view.sentBefore));
  const isBackwards = from !== '' && to !== '' && from >= to;
  return (
    <div className="picker stack">
      <div className="spans">
        {Object.entries(spans).map(([label, hours]) => (
          <button
            key={label}
            type="button"
            className="option line spread"
            onClick={() => {
              const start = new Date(serverNow() - hours * HOUR).toISOString();
              onChange({ sentAfter: fromField(start), sentBefore: undefined });
            }}
          >
            {label}
          </button>
        ))}
      </div>
      <form
        className="time-fields stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBackwards) onChange({ sentAfter: fromField(from), sentBefore: fromField(to) });
        }}
      >
        <TimeField label="From (UTC)" value={from} onChange={setFrom} />
        <TimeField label="To (UTC)" value={to} onChange={setTo} />
        {isBackwards && <p className="picker-hint problem">The end must come after the beginning.</p>}
        <button type="submit" className="button primary">
          Apply
        </button>
      </form>
    </div>
  );
}

interface TimeFieldProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function TimeField({ label, value, onChange }: TimeFieldProps) {
  return (
    <label className="stack gap-4 muted small">
      {label}
      <input
        type="datetime-local"
        className="field"
        value={value}
        onChange={({ target }) => onChange(target.value)}
      />
    </label>
  );
}

const fromField = (text: string) => (text === '' ? undefined : `${text.slice(0, 16)}:00Z`);

/** `datetime-local` fields have no time zone; they show and take UTC, as the whole explorer does. */
function fieldTime(iso: string | undefined): string {
  const time = iso === undefined ? Number.NaN : Date.parse(iso);
  return Number.isNaN(time) ? '' : new Date(time).toISOString().slice(0, 16);
}

const minuteOf = (iso: string) => fieldTime(iso).replace('T', ' ') || iso;

// ---- Addresses

function AddressChip({ name, view, onChange }: FilterProps) {
  const value = view[name];
  return (
    <ChipPopover
      label={filterLabels[name]}
      value={value === undefined ? undefined : <code title={value}>{shortHash(value)}</code>}
      onClear={() => onChange({ [name]: undefined })}
    >
      {(close) => (
        <AddressPicker
          name={name}
          view={view}
          onChange={(change) => {
            onChange(change);
            close();
          }}
        />
      )}
    </ChipPopover>
  );
}

function AddressPicker({ name, view, onChange }: FilterProps) {
  const [text, setText] = useState(view[name] ?? '');
  const [isJudged, setJudged] = useState(false);
  const address = text.trim();
  const isValid = address === '' || addressBytes(address).length > 0;
  const isWrong = isJudged && !isValid;
  return (
    <form
      className="picker address-field stack"
      onSubmit={(event) => {
        event.preventDefault();
        setJudged(true);
        if (isValid) onChange({ [name]: address || undefined });
      }}
    >
      <FirstField
        type="text"
        value={text}
        aria-label={`${filterLabels[name]} address`}
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

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
import { OptionRow, useKnownNetworks } from './search-box.tsx';

interface FilterBarProps {
  readonly view: SearchView;
  readonly onChange: (change: Readonly<Partial<Record<FilterName, string | undefined>>>) => void;
}

interface FilterProps extends FilterBarProps {
  readonly name: FilterName;
}

/** How a filter is shown once it is set, and the panel in which it is chosen. */
interface Control {
  readonly Value: (props: { readonly value: string; readonly view: SearchView }) => ReactNode;
  readonly Picker: (props: FilterProps) => ReactNode;
  readonly staysOpen?: boolean;
}

const networkControl: Control = { Value: NetworkValue, Picker: NetworkPicker };
const addressControl: Control = {
  Value: ({ value }) => <code title={value}>{shortHash(value)}</code>,
  Picker: AddressPicker,
};

/** In the order of the chips. Other filters have no chip until the search box or a link sets them. */
const controls: Partial<Record<FilterName, Control>> = {
  sourceChainSelector: networkControl,
  destChainSelector: networkControl,
  chainSelector: networkControl,
  status: { Value: ({ value }) => statusesWords(value), Picker: StatusPicker, staysOpen: true },
  sentAfter: { Value: ({ view }) => spanWords(view), Picker: TimePicker },
  sender: addressControl,
  receiver: addressControl,
  sourceTokenAddress: addressControl,
};
const controlled = Object.keys(controls) as FilterName[];
/** Part of the chip of `sentAfter`, and a button. */
const others: readonly FilterName[] = ['sentBefore', 'readyForManualExecOnly'];

export function FilterBar({ view, onChange }: FilterBarProps) {
  const isPressed = view.readyForManualExecOnly === 'true';
  const uncontrolled = filterNames.filter((name) => !controls[name] && !others.includes(name));
  const chip = (name: FilterName) => <Chip key={name} name={name} view={view} onChange={onChange} />;
  const noFilters = Object.fromEntries(Object.keys(filtersOf(view)).map((name) => [name, undefined]));
  return (
    <section className="filters flow" aria-label="Filters">
      {controlled.map(chip)}
      <button
        type="button"
        className="button chip chip-action"
        aria-pressed={isPressed}
        onClick={() => onChange({ readyForManualExecOnly: isPressed ? undefined : 'true' })}
      >
        <Icon name="hand" />
        {filterLabels.readyForManualExecOnly}
      </button>
      {uncontrolled.map(chip)}
      {hasFilters(view) && (
        <button type="button" className="clear-all muted" onClick={() => onChange(noFilters)}>
          Clear all
        </button>
      )}
    </section>
  );
}

/** The elements stay the same when the filter is set, so that an open panel stays open. */
function Chip({ name, view, onChange }: FilterProps) {
  const isTime = name === 'sentAfter';
  const value = view[name] ?? (isTime ? view.sentBefore : undefined);
  const isSet = value !== undefined;
  const control = controls[name];
  if (!isSet && (!control || name === 'chainSelector')) return null;
  const label = isTime ? 'Time' : filterLabels[name];
  const title = `Clear ${label}`;
  return (
    <span className={isSet ? 'button chip chip-set' : 'chip-unset'}>
      {control ? (
        <Popover
          className={isSet ? 'chip-static inline' : 'button chip'}
          title={`Filter by ${label.toLowerCase()}`}
          label={
            <>
              {label}
              {isSet ? (
                <span className="inline bold">
                  <control.Value value={value} view={view} />
                </span>
              ) : (
                <Icon name="down" />
              )}
            </>
          }
        >
          {(close) => (
            <control.Picker
              name={name}
              view={view}
              onChange={(change) => {
                onChange(change);
                if (!control.staysOpen) close();
              }}
            />
          )}
        </Popover>
      ) : (
        <span className="chip-static inline">
          {label} <code title={value}>{value?.split(',').map(shortHash).join(', ')}</code>
        </span>
      )}
      {isSet && (
        <button
          type="button"
          className="icon-button"
          aria-label={title}
          title={title}
          onClick={() => onChange({ [name]: undefined, ...(isTime && { sentBefore: undefined }) })}
        >
          <Icon name="close" />
        </button>
      )}
    </span>
  );
}

// ---- Networks

function NetworkValue({ value }: { readonly value: string }) {
  const builtIn = networkBySelector(value);
  // Others are known to the server by the definition of its operator.
  const defined = useKnownNetworks(!builtIn).find(({ selector }) => selector === value);
  return <NamedNetwork name={(builtIn ?? defined)?.displayName ?? value} selector={value} />;
}

const MAX_LISTED = 60;

function NetworkPicker({ name, onChange }: FilterProps) {
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
  const { fieldProps, onKeyDown, list, reset } = useOptionList(options, ({ selector }) =>
    onChange({ [name]: selector }),
  );
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
      {options.length === 0 && <p className="hint muted small">No network is called that.</p>}
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

const statusesOf = (text = '') => text.split(',') as Status[];

function statusesWords(value: string): string {
  const chosen = statusesOf(value);
  if (chosen.length > 2) return `${chosen.length} of ${statuses.length}`;
  return chosen.map((status) => statusWords[status] ?? status).join(', ');
}

function StatusPicker({ view, onChange }: FilterProps) {
  const chosen = statusesOf(view.status);
  const toggle = (status: Status) => {
    const next = statuses.filter((one) => chosen.includes(one) !== (one === status));
    onChange({ status: next.join(',') || undefined });
  };
  return (
    <fieldset className="options">
      <legend className="visually-hidden">Statuses</legend>
      {statuses.map((status) => (
        <label key={status} className="option line gap-12">
          <input type="checkbox" checked={chosen.includes(status)} onChange={() => toggle(status)} />
          <StatusBadge status={status} />
        </label>
      ))}
    </fieldset>
  );
}

// ---- Time

const HOUR = 3_600_000;
const spans = { 'Last hour': 1, 'Last 24 hours': 24, 'Last 7 days': 7 * 24, 'Last 30 days': 30 * 24 };

function spanWords({ sentAfter, sentBefore }: SearchView): string {
  const from = sentAfter && `from ${minuteOf(sentAfter)}`;
  const to = sentBefore && `to ${minuteOf(sentBefore)}`;
  return [from, to].filter(Boolean).join(' ');
}

function TimePicker({ view, onChange }: FilterProps) {
  const [from, setFrom] = useState(fieldTime(view.sentAfter));
  const [to, setTo] = useState(fieldTime(view.sentBefore));
  const isBackwards = from !== '' && to !== '' && from >= to;
  return (
    <div className="picker stack">
      <div className="options">
        {Object.entries(spans).map(([label, hours]) => (
          <button
            key={label}
            type="button"
            className="option line spread gap-16"
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
        {timeField('From', from, setFrom)}
        {timeField('To', to, setTo)}
        {isBackwards && <p className="hint small problem">The end must come after the beginning.</p>}
        <button type="submit" className="button primary">
          Apply
        </button>
      </form>
    </div>
  );
}

function timeField(label: string, value: string, setValue: (value: string) => void): ReactNode {
  return (
    <label className="stack gap-4 muted small">
      {label} (UTC)
      <input
        type="datetime-local"
        className="field"
        value={value}
        onChange={({ target }) => setValue(target.value)}
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

function AddressPicker({ name, view, onChange }: FilterProps) {
  const [text, setText] = useState(view[name] ?? '');
  const [isJudged, setJudged] = useState(false);
  const address = text.trim();
  const isValid = address === '' || addressBytes(address).length > 0;
  const isWrong = isJudged && !isValid;
  return (
    <form
      className="picker stack"
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
      <p className={`hint small ${isWrong ? 'problem' : 'muted'}`} role="status">
        {isWrong ? 'Not a valid address of any chain family.' : 'Any notation of any chain family.'}
      </p>
      <button type="submit" className="button primary">
        Apply
      </button>
    </form>
  );
}

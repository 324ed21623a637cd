/** Actions on a search: export it to a file, or copy it as an API request. */
import { type FilterName, filterNames, filterTable } from '../../../src/domain/filters/filter-table.ts';
import { CodeBlock } from '../parts/code-block.tsx';
import { Icon } from '../parts/icons.tsx';
import { Popover } from '../parts/popover.tsx';
import { searchUrl } from '../server/api-client.ts';
import { basePath, serverUrl } from '../server/base-path.ts';
import { type Filters, filtersOf, type SearchView } from '../server/search-view.ts';

export function ViewActions({ view }: { readonly view: SearchView }) {
  return (
    <div className="view-actions">
      <Popover
        className="button quiet"
        title="Export"
        label={
          <>
            <Icon name="export" /> Export
          </>
        }
      >
        {(close) => <ExportMenu filters={filtersOf(view)} onDone={close} />}
      </Popover>
      <Popover
        className="button quiet"
        title="The same as an API request"
        label={
          <>
            <Icon name="code" /> API
          </>
        }
      >
        {() => <RequestPanel view={view} />}
      </Popover>
    </div>
  );
}

const formats = [
  ['csv', 'CSV', 'for spreadsheets'],
  ['ndjson', 'NDJSON', 'whole records, one a line'],
] as const;

function ExportMenu({ filters, onDone }: { readonly filters: Filters; readonly onDone: () => void }) {
  return (
    <div className="menu">
      <p className="picker-hint">Everything that matches, on all pages.</p>
      {formats.map(([format, name, purpose]) => (
        <a
          key={format}
          className="option"
          href={`${basePath}/v2/messages/export?${new URLSearchParams({ format, ...filters })}`}
          download
          onClick={onDone}
        >
          <span className="option-value">{name}</span>
          <span className="option-role">{purpose}</span>
        </a>
      ))}
    </div>
  );
}

function RequestPanel({ view }: { readonly view: SearchView }) {
  const curl = `curl '${serverUrl}${searchUrl(view)}'`;
  const sdk = sdkCode(filtersOf(view), serverUrl);
  return (
    <div className="requests">
      <CodeBlock title="curl" code={curl} />
      <CodeBlock title="@chainlink/ccip-sdk" code={sdk} />
      <p className="picker-hint">
        Everything else is in the <a href={`${basePath}/docs`}>API documentation</a>.
      </p>
    </div>
  );
}

/** Code that applies a filter, which the SDK does not have, to its results. */
const checks: Partial<Record<FilterName, (value: string) => string>> = {
  status: (value) => `if (![${value.split(',').map(quoted).join(', ')}].includes(message.status)) continue;`,
  sentAfter: (value) => `if (new Date(message.sendTimestamp) < new Date(${quoted(value)})) break;`,
  sentBefore: (value) => `if (new Date(message.sendTimestamp) >= new Date(${quoted(value)})) continue;`,
};

/** A filter as an option of the SDK's search; undefined for one that does not restrict, or that it would not take. */
function sdkOption(name: FilterName, value: string): string | undefined {
  switch (filterTable[name].kind.noun) {
    case 'network':
      return /^\d+$/.test(value) ? `${name}: ${value}n` : undefined;
    case null:
      return value === 'true' ? `${name}: true` : undefined;
    default:
      return `${name}: ${quoted(value)}`;
  }
}

/** The search as SDK code. Filters that the SDK does not have are applied to its results, or named in a comment. */
export function sdkCode(filters: Filters, origin: string): string {
  const given = filterNames.flatMap((name) => {
    const value = filters[name];
    return value === undefined ? [] : [{ name, value, isInSdk: filterTable[name].isInSdk === true }];
  });
  const options = given.flatMap(({ name, value, isInSdk }) => (isInSdk && sdkOption(name, value)) || []);
  const missing = given.filter(({ name, isInSdk }) => !isInSdk && !checks[name]);
  return [
    `import { CCIPAPIClient } from '@chainlink/ccip-sdk';`,
    '',
    `const api = CCIPAPIClient.fromUrl(${quoted(origin)});`,
    ...missing.map(({ name }) => `// The SDK has no filter for ${name}; the request above has.`),
    options.length === 0
      ? 'for await (const message of api.searchAllMessages()) {'
      : `for await (const message of api.searchAllMessages({\n  ${options.join(',\n  ')},\n})) {`,
    ...given.flatMap(({ name, value }) => (checks[name] ? [`  ${checks[name](value)}`] : [])),
    '  console.log(message.messageId, message.status);',
    '}',
  ].join('\n');
}

/** A JavaScript string literal of any text. */
function quoted(text: string): string {
  return `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

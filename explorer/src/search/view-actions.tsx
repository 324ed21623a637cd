/** Actions on a search: export it to a file, or copy it as an API request. */
import type { FilterName } from '../../../src/domain/filters/filter-table.ts';
import { Popover } from '../parts/controls.tsx';
import { CodeBlock } from '../parts/copy.tsx';
import { Icon } from '../parts/icons.tsx';
import { basePath, searchUrl, serverUrl } from '../server/api-client.ts';
import { type Filters, filterNames, filtersOf, type SearchView } from '../server/search-view.ts';
import { OptionRow } from './search-box.tsx';

const formats = [
  ['csv', 'CSV', 'for spreadsheets'],
  ['ndjson', 'NDJSON', 'whole records, one a line'],
] as const;

export function ViewActions({ view }: { readonly view: SearchView }) {
  const filters = filtersOf(view);
  return (
    <div className="view-actions line gap-4">
      <Popover className="button quiet" title="Export" label={[<Icon key="icon" name="export" />, ' Export']}>
        {(close) => (
          <div className="options">
            <p className="hint muted small">Everything that matches, on all pages.</p>
            {formats.map(([format, name, purpose]) => (
              <a
                key={format}
                className="option line spread gap-16"
                href={`${basePath}/v2/messages/export?${new URLSearchParams({ format, ...filters })}`}
                download
                onClick={close}
              >
                <OptionRow value={name} means={purpose} />
              </a>
            ))}
          </div>
        )}
      </Popover>
      <Popover
        className="button quiet"
        title="The same as an API request"
        label={[<Icon key="icon" name="code" />, ' API']}
      >
        {() => (
          <div className="stack gap-12">
            <CodeBlock title="curl" code={`curl '${serverUrl}${searchUrl(view)}'`} />
            <CodeBlock title="@chainlink/ccip-sdk" code={sdkCode(filters, serverUrl)} />
            <p className="hint muted small">
              Everything else is in the <a href={`${basePath}/docs`}>API documentation</a>.
            </p>
          </div>
        )}
      </Popover>
    </div>
  );
}

/** Code that applies a filter, which the SDK does not have, to its results. */
const checks: Partial<Record<FilterName, (value: string) => string>> = {
  status: (value) => `if (![${value.split(',').map(quoted).join(', ')}].includes(message.status)) continue;`,
  sentAfter: (value) => `if (new Date(message.sendTimestamp) < new Date(${quoted(value)})) break;`,
  sentBefore: (value) => `if (new Date(message.sendTimestamp) >= new Date(${quoted(value)})) continue;`,
};

const selectorOption = (value: string) => (/^\d+$/.test(value) ? `${value}n` : undefined);

/** Filters that the SDK's search has too, as its options; undefined for a value that does not restrict, or that it would not take. */
const sdkOptions: Partial<Record<FilterName, (value: string) => string | undefined>> = {
  sender: quoted,
  receiver: quoted,
  sourceChainSelector: selectorOption,
  destChainSelector: selectorOption,
  readyForManualExecOnly: (value) => (value === 'true' ? value : undefined),
  sourceTransactionHash: quoted,
  sourceTokenAddress: quoted,
};

/** The search as SDK code. Filters that the SDK does not have are applied to its results, or named in a comment. */
function sdkCode(filters: Filters, origin: string): string {
  const given = filterNames.flatMap((name) =>
    filters[name] === undefined ? [] : [{ name, value: filters[name] }],
  );
  const options = given.flatMap(({ name, value }) => {
    const option = sdkOptions[name]?.(value);
    return option === undefined ? [] : [`${name}: ${option}`];
  });
  const missing = given.filter(({ name }) => !sdkOptions[name] && !checks[name]);
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

/** Actions on a search: export it to a file, or copy it as an API request. */
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

/** How the SDK's search takes each filter. The type makes the table complete. */
const sdkForms = {
  sender: 'text',
  receiver: 'text',
  sourceTransactionHash: 'text',
  sourceTokenAddress: 'text',
  sourceChainSelector: 'bigint',
  destChainSelector: 'bigint',
  readyForManualExecOnly: 'boolean',
  status: 'check of each message',
  sentAfter: 'check of each message',
  sentBefore: 'check of each message',
  q: 'none',
  address: 'none',
  messageId: 'none',
  chainSelector: 'none',
  destTransactionHash: 'none',
} as const satisfies Record<keyof Filters, string>;

function filtersWith(form: (typeof sdkForms)[keyof Filters]): readonly (keyof Filters)[] {
  return (Object.keys(sdkForms) as (keyof Filters)[]).filter((name) => sdkForms[name] === form);
}

/** The search as SDK code. Filters that the SDK does not have are applied to its results, or named in a comment. */
export function sdkCode(filters: Filters, origin: string): string {
  const { status, readyForManualExecOnly, sentAfter, sentBefore } = filters;
  const given = [
    ...filtersWith('text').flatMap((name) =>
      filters[name] === undefined ? [] : [`${name}: ${quoted(filters[name])}`],
    ),
    ...filtersWith('bigint').flatMap((name) =>
      /^\d+$/.test(filters[name] ?? '') ? [`${name}: ${filters[name]}n`] : [],
    ),
    ...(readyForManualExecOnly === 'true' ? ['readyForManualExecOnly: true'] : []),
  ];
  const checks = [
    ...(status === undefined
      ? []
      : [`  if (![${status.split(',').map(quoted).join(', ')}].includes(message.status)) continue;`]),
    ...(sentAfter === undefined
      ? []
      : [`  if (new Date(message.sendTimestamp) < new Date(${quoted(sentAfter)})) break;`]),
    ...(sentBefore === undefined
      ? []
      : [`  if (new Date(message.sendTimestamp) >= new Date(${quoted(sentBefore)})) continue;`]),
  ];
  const missing = filtersWith('none').filter((name) => filters[name] !== undefined);
  return [
    `import { CCIPAPIClient } from '@chainlink/ccip-sdk';`,
    '',
    `const api = CCIPAPIClient.fromUrl(${quoted(origin)});`,
    ...missing.map((name) => `// The SDK has no filter for ${name}; the request above has.`),
    given.length === 0
      ? 'for await (const message of api.searchAllMessages()) {'
      : `for await (const message of api.searchAllMessages({\n  ${given.join(',\n  ')},\n})) {`,
    ...checks,
    '  console.log(message.messageId, message.status);',
    '}',
  ].join('\n');
}

/** A JavaScript string literal of any text. */
function quoted(text: string | undefined): string {
  return `'${JSON.stringify(text ?? '')
    .slice(1, -1)
    .replaceAll('\\"', '"')
    .replaceAll("'", "\\'")}'`;
}

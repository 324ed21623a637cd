/**
 * The API documentation page: HTML without external resources. Paths, parameters, fields and errors come from the OpenAPI
 * document; the text around them is here.
 */
import { errorCatalogue } from '../../domain/errors.ts';
import type { Status } from '../../domain/lifecycle.ts';
import { docsPageScript, docsPageStyle, EXAMPLE_ORIGIN } from './docs-page-assets.ts';
import { Html, html, prose } from './html.ts';
import type { JsonSchema, OpenApiDocument, Operation, Reference, Response } from './openapi.ts';

/** @param basePath the prefix of all URLs */
export function docsPage(document: OpenApiDocument, isSimulated: boolean, basePath = ''): string {
  const { info, components } = document;
  const sections: readonly Section[] = [
    { id: 'quick-start', title: 'Quick start', body: quickStart(document) },
    { id: 'sdk', title: 'With ccip-sdk', body: sdk },
    { id: 'pagination', title: 'Pagination', body: pagination },
    { id: 'addresses', title: 'Addresses', body: addresses },
    { id: 'statuses', title: 'Statuses', body: statusTable },
    ...document.tags.map((tag) => operationSection(document, tag)),
    {
      id: 'schemas',
      title: 'Schemas',
      body: html`${Object.entries(components.schemas).map(([name, schema]) => schemaArticle(name, schema, components.schemas))}`,
      parts: Object.keys(components.schemas).map((name) => ({ id: schemaId(name), title: name })),
    },
    { id: 'errors', title: 'Errors', body: errors() },
  ];
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${info.description}">
<title>${info.title} API${isSimulated ? ' (simulated data)' : ''}</title>
<style>${new Html(docsPageStyle)}</style>
</head>
<body data-example-origin="${EXAMPLE_ORIGIN}" data-base-path="${basePath}">
<a class="skip" href="#content">Skip to the content</a>
${isSimulated ? simulatedBanner : ''}
<div class="page">
<header class="masthead">
<h1>${info.title} API <span class="version">${info.version}</span></h1>
<p>${prose(info.description)}</p>
</header>
<div class="columns">
<nav aria-label="Contents"><ul>${sections.map(contentsEntry)}</ul></nav>
<main id="content" tabindex="-1">${sections.map(sectionHtml)}</main>
</div>
<footer>For programs, the same as OpenAPI 3.1: <a href="${basePath}/openapi.json">${basePath}/openapi.json</a></footer>
</div>
<script>${new Html(docsPageScript)}</script>
</body>
</html>
`.text;
}

interface Section {
  readonly id: string;
  readonly title: string;
  readonly body: Html;
  readonly parts?: readonly { readonly id: string; readonly title: string }[];
}

function contentsEntry({ id, title, parts = [] }: Section): Html {
  const inner = parts.map((part) => html`<li><a href="#${part.id}">${part.title}</a></li>`);
  return html`<li><a href="#${id}">${title}</a>${parts.length > 0 ? html`<ul>${inner}</ul>` : ''}</li>`;
}

function sectionHtml({ id, title, body }: Section): Html {
  return html`<section id="${id}" aria-labelledby="${id}-title"><h2 id="${id}-title">${title}</h2>${body}</section>
`;
}

const simulatedBanner = html`<div class="banner" role="note"><p><strong>Simulated data.</strong> This service shows the simulated network
of the demo: no message here exists on a chain. Every response says so with
<code>X-Lanescan-Simulated: true</code>.</p></div>`;

// ---- Text

function quickStart(document: OpenApiDocument): Html {
  const example = (name: string) =>
    String(
      document.paths['/v2/messages']?.get.parameters.find((parameter) => parameter.name === name)?.example,
    );
  const message = document.components.schemas.Message?.examples?.[0] as { messageId: string } | undefined;
  return html`
<p>Everything is a <code>GET</code>; no key is needed. A key from the operator (<code>X-API-Key</code>) raises the rate limit.
Below each path is a form that sends a request to it. The newest messages:</p>
${command(`curl '${EXAMPLE_ORIGIN}/v2/messages?limit=5'`)}
<p>Filters combine: a message must match all of them. Failed messages of one sender that can be executed manually:</p>
${command(`curl '${EXAMPLE_ORIGIN}/v2/messages?sender=${example('sender')}&readyForManualExecOnly=true'`)}
<p>Messages in flight on one lane since the beginning of the year, as summaries:</p>
${command(
  `curl '${EXAMPLE_ORIGIN}/v2/messages?sourceChainSelector=${example('sourceChainSelector')}&destChainSelector=${example('destChainSelector')}&status=SENT,SOURCE_FINALIZED,COMMITTED&sentAfter=2026-01-01T00:00:00Z&view=summary'`,
)}
<p>One message by its id:</p>
${command(`curl '${EXAMPLE_ORIGIN}/v2/messages/${message?.messageId ?? ''}'`)}
<p>A full record looks like this; <a href="#${schemaId('Message')}">its fields</a> are described below.</p>
${codeBlock('An example record', jsonHtml(message), 'tall')}`;
}

const sdk = html`
<p>The paths and responses are those that <code>@chainlink/ccip-sdk</code> expects. Give its client the URL of this
service instead of the hosted one; the client adds <code>/v2</code> itself.</p>
${codeBlock(
  'Use with the SDK',
  html`import { CCIPAPIClient } from '@chainlink/ccip-sdk';

const api = CCIPAPIClient.fromUrl('${EXAMPLE_ORIGIN}');

const page = await api.searchMessages({ sender: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266' });
for await (const message of api.searchAllMessages({ readyForManualExecOnly: true })) {
  const request = await api.getMessageById(message.messageId);
}`,
)}`;

const pagination = html`
<p>A page holds up to <code>limit</code> messages, newest first: by send time, then by message id. While there are
more, <code>pagination.cursor</code> is a token for the next page; on the last page it is <code>null</code>.</p>
${command(`curl '${EXAMPLE_ORIGIN}/v2/messages?status=FAILED&limit=2'`)}
${codeBlock(
  'The end of a page that is not the last',
  jsonHtml({ data: ['…'], pagination: { limit: 2, hasNextPage: true, cursor: 'AXrU3k…' } }),
)}
<p>Send the cursor back without filters. It contains the filters and the view of its search: further filters are rejected
with <code>INVALID_PARAMETER_COMBINATION</code>. Only <code>limit</code> and <code>view</code> may be added.</p>
${command(`curl '${EXAMPLE_ORIGIN}/v2/messages?cursor=AXrU3k…&limit=2'`)}
<p>A walk through the pages shows every message that matches throughout the walk exactly once, whatever arrives
meanwhile. One exception: a message whose send time changes during the walk (a chain reorganisation puts it into another
block) may be shown twice or not at all. All messages, in a shell with <code>jq</code>:</p>
${codeBlock(
  'A walk through all pages',
  html`query='status=FAILED&limit=1000'
while [ -n "$query" ]; do
  page=$(curl -sS --fail "${EXAMPLE_ORIGIN}/v2/messages?$query") || break
  printf '%s' "$page" | jq -c '.data[]'
  query=$(printf '%s' "$page" | jq -r '.pagination.cursor // empty | "limit=1000&cursor=" + .')
done`,
)}`;

const addresses = html`
<p>An address is compared as bytes, in whatever spelling its chain’s family allows: EVM in any letter case or
left-padded to 32 bytes, SVM in base58 (where case matters), Aptos and Sui as hexadecimal with or without leading
zeros, TON raw or friendly. EVM addresses are shown with their checksum. Text that is not a valid address
in any family is rejected; a valid but unknown address or chain selector finds nothing.</p>`;

const statusMeanings: Record<Status, readonly [style: string, meaning: string]> = {
  SENT: ['waiting', 'Sent; waiting for confirmation on the source chain.'],
  SOURCE_FINALIZED: ['moving', 'Final on the source chain; ready for the protocol.'],
  COMMITTED: ['moving', 'Committed on the destination chain (lanes up to 1.6).'],
  BLESSED: ['verified', 'Approved and ready for execution (lanes up to 1.6).'],
  VERIFYING: ['moving', 'Being verified (lanes above 1.6).'],
  VERIFIED: ['verified', 'Verified and ready for execution (lanes above 1.6).'],
  FAILED: ['failed', 'The execution failed; it can be repeated manually, and may then succeed.'],
  SUCCESS: ['done', 'Executed on the destination chain.'],
};

const statusTable = html`<p>A message moves down this table. Steps may be skipped; only a failed message can still change its outcome.</p>
${table(
  '',
  ['Status', 'Meaning'],
  Object.entries(statusMeanings).map(([status, [style, meaning]]) => [
    html`<span class="status ${style}">${status}</span>`,
    meaning,
  ]),
  'Statuses of a message',
)}`;

function errors(): Html {
  const example = {
    error: 'INVALID_PARAMETERS',
    message: 'limit takes a whole number from 1 to 1000',
    requestId: '5f3c1f0e-6a3b-4b7e-9d51-2f8a4c0b9e11',
    details: [{ parameter: 'limit', problem: 'takes a whole number from 1 to 1000' }],
  };
  return html`
<p>Every error has <a href="#${schemaId('Error')}">the same format</a>. <code>error</code> is for
programs, <code>message</code> for people. <code>requestId</code> is also in the header <code>X-Request-ID</code> of
every response and in the service’s log.</p>
${codeBlock('An example error', jsonHtml(example))}
${table(
  'All error codes',
  ['Code', 'Status', 'Meaning'],
  Object.entries(errorCatalogue).map(([code, { status, meaning }]) => [
    html`<code>${code}</code>`,
    html`${status}`,
    prose(meaning),
  ]),
)}`;
}

// ---- From the document

function operationSection(document: OpenApiDocument, tag: OpenApiDocument['tags'][number]): Section {
  const operations = Object.entries(document.paths)
    .map(([path, { get }]) => ({ path, operation: get }))
    .filter(({ operation }) => operation.tags.includes(tag.name));
  return {
    id: `tag-${tag.name.toLowerCase()}`,
    title: tag.name,
    body: html`<p>${prose(tag.description)}</p>${operations.map(({ path, operation }) => operationArticle(document, path, operation))}`,
    parts: operations.map(({ operation }) => ({ id: operation.operationId, title: operation.summary })),
  };
}

function operationArticle({ components }: OpenApiDocument, path: string, operation: Operation): Html {
  const { operationId, summary, description, parameters, responses, 'x-aliases': aliases = [] } = operation;
  const also = aliases.map((alias) => html` <span class="also">also <code>${alias}</code></span>`);
  return html`<article id="${operationId}" aria-labelledby="${operationId}-title">
<h3 id="${operationId}-title">${summary}</h3>
<p class="path"><span class="method">GET</span> <strong>${path}</strong>${also}</p>
<p>${prose(description)}</p>
${parameters.length > 0 ? parameterTable(summary, parameters) : ''}
${table('Responses', ['Status', 'Body', 'Meaning'], responseRows(responses), `Responses of “${summary}”`)}
${bodyTable(summary, responses, components.schemas)}
${tryForm(path, operation)}
</article>
`;
}

/** Streams have no end, and this page cannot show exports of any length. */
const withoutForm = /\/(stream|export)$/;

function tryForm(path: string, { operationId, summary, parameters }: Operation): Html {
  if (withoutForm.test(path)) return html``;
  const fields = parameters.map(({ name, in: place, example, schema }) => {
    const id = `try-${operationId}-${name}`;
    const hint = example ?? schema.default ?? '';
    return html`<label for="${id}">${name}</label><input id="${id}" name="${name}" data-in="${place}" placeholder="${String(hint)}" autocomplete="off" spellcheck="false">`;
  });
  return html`<form class="try" data-path="${path}" aria-label="Try “${summary}”" hidden>
<div class="fields">${fields}</div>
<button>Send the request</button>
<output class="answer" aria-live="polite"></output>
</form>`;
}

function parameterTable(summary: string, parameters: Operation['parameters']): Html {
  return table(
    'Parameters',
    ['Name', 'Type', 'Meaning'],
    parameters.map(({ name, required, schema, description, example }) => {
      const facts = [
        ...('default' in schema ? [html`Default <code>${String(schema.default)}</code>.`] : []),
        ...(example === undefined ? [] : [html`Example <code>${String(example)}</code>`]),
      ];
      return [
        html`<code>${name}</code>${required ? html`<span class="optional">required</span>` : ''}`,
        typeHtml(schema),
        html`${prose(description)}${facts.map((fact) => html`<span class="note">${fact}</span>`)}`,
      ];
    }),
    `Parameters of “${summary}”`,
  );
}

function responseRows(responses: Operation['responses']): readonly Row[] {
  const statuses = Object.keys(responses);
  // Statuses above 404 are the same on every path and share one row.
  const general = statuses.filter((status) => Number(status) > 404);
  const own = statuses.filter((status) => !general.includes(status));
  return [
    ...own.map((status): Row => [html`<code>${status}</code>`, ...responseCells(status, responses[status])]),
    [
      html`<code>${general.join(', ')}</code>`,
      schemaLink('Error'),
      html`As on every path; see <a href="#errors">Errors</a>.`,
    ],
  ];
}

function responseCells(status: string, response: Response | Reference | undefined): Row {
  if (response && 'content' in response) {
    const [[mediaType, { schema }] = ['', { schema: {} }]] = Object.entries(response.content);
    const named = mediaType === '' ? 'none' : html`<code>${mediaType}</code>`;
    return [schema.$ref ? typeHtml(schema) : named, prose(response.description)];
  }
  const codes = Object.entries(errorCatalogue).filter(([, entry]) => String(entry.status) === status);
  const links = codes.map(([code]) => html`<a href="#errors"><code>${code}</code></a> `);
  return [schemaLink('Error'), html`${links}`];
}

/** The fields of a response body whose schema has no name. */
function bodyTable(summary: string, responses: Operation['responses'], schemas: Schemas): Html {
  const success = responses[200];
  const schema = success && 'content' in success ? Object.values(success.content)[0]?.schema : undefined;
  if (!schema?.properties) return html``;
  return table('Body', ['Field', 'Type', 'Meaning'], fieldRows(schema, schemas), `Body of “${summary}”`);
}

type Schemas = OpenApiDocument['components']['schemas'];

const schemaId = (name: string) => `schema-${name}`;
const schemaLink = (name: string) => html`<a href="#${schemaId(name)}">${name}</a>`;
const referredName = ($ref: string) => $ref.split('/').at(-1) ?? '';

function schemaArticle(name: string, schema: JsonSchema, schemas: Schemas): Html {
  return html`<article id="${schemaId(name)}" aria-labelledby="${schemaId(name)}-title">
<h3 id="${schemaId(name)}-title">${name}</h3>
<p>${prose(schema.description ?? '')}</p>
${table('', ['Field', 'Type', 'Meaning'], fieldRows(schema, schemas), `Fields of ${name}`)}
</article>
`;
}

/** The fields of an object; fields of a nested object without a named schema follow it, with their path. */
function fieldRows(schema: JsonSchema, schemas: Schemas, prefix = ''): readonly Row[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const optional = schema.required?.includes(name) ? '' : html`<span class="optional">optional</span>`;
    const own = [
      html`<code>${prefix}${name}</code>${optional}`,
      typeHtml(field),
      prose(fieldDescription(field, schemas)),
    ];
    const inner = nestedObject(field);
    return inner ? [own, ...fieldRows(inner.schema, schemas, `${prefix}${name}${inner.suffix}.`)] : [own];
  });
}

function nestedObject(schema: JsonSchema): { schema: JsonSchema; suffix: string } | undefined {
  if (schema.properties) return { schema, suffix: '' };
  if (schema.items?.properties) return { schema: schema.items, suffix: '[]' };
  const variant = schema.anyOf?.find(({ properties }) => properties);
  return variant && { schema: variant, suffix: '' };
}

/** A field without a description has that of its schema. */
function fieldDescription({ description, $ref, anyOf = [] }: JsonSchema, schemas: Schemas): string {
  if (description !== undefined) return description;
  if ($ref) return schemas[referredName($ref)]?.description ?? '';
  return anyOf
    .map((variant) => fieldDescription(variant, schemas))
    .filter((text) => text !== '')
    .join(' Or: ');
}

function typeHtml(schema: JsonSchema): Html {
  if (schema.$ref) return schemaLink(referredName(schema.$ref));
  if (schema.anyOf)
    return html`${schema.anyOf.map((variant, index) => html`${index > 0 ? ' or ' : ''}${typeHtml(variant)}`)}`;
  if (schema.type === 'array') return html`array of ${typeHtml(schema.items ?? {})}`;
  const { type = 'any', format, minimum, maximum, pattern } = schema;
  const range =
    minimum === undefined ? '' : maximum === undefined ? `, from ${minimum}` : `, ${minimum} to ${maximum}`;
  const shape = pattern ? html` <code>${pattern}</code>` : '';
  const values = schema.enum?.map((value) => html` <code>${String(value)}</code>`);
  return html`${type}${format ? ` (${format})` : ''}${range}${shape}${values ? html`:${values}` : ''}`;
}

// ---- Elements

type Row = readonly (Html | string)[];

/** Explicit roles, because the style sheet shows rows as blocks on narrow screens, which removes the implicit ones. */
function table(caption: string, headings: readonly string[], rows: readonly Row[], label = caption): Html {
  const head = headings.map((heading) => html`<th role="columnheader" scope="col">${heading}</th>`);
  const body = rows.map(
    (cells) => html`<tr role="row">${cells.map((cell) => html`<td role="cell">${cell}</td>`)}</tr>
`,
  );
  return html`<table role="table" aria-label="${label}">${caption ? html`<caption>${caption}</caption>` : ''}
<thead role="rowgroup"><tr role="row">${head}</tr></thead>
<tbody role="rowgroup">${body}</tbody></table>`;
}

/** One click selects the whole line. */
function command(line: string): Html {
  return html`<pre class="command" tabindex="0" role="group" aria-label="Command"><code>${line}</code></pre>`;
}

function codeBlock(label: string, content: Html, kind = ''): Html {
  return html`<pre class="${kind}" tabindex="0" role="group" aria-label="${label}"><code>${content}</code></pre>`;
}

/** Indented JSON with highlighted keys, strings and literals. */
function jsonHtml(value: unknown): Html {
  const text = JSON.stringify(value, null, 2) ?? '';
  const pieces = text.split(/("(?:[^"\\]|\\.)*"(?:\s*:)?|\b(?:true|false|null|-?\d+)\b)/);
  return html`${pieces.map((piece, index) => (index % 2 === 1 ? token(piece) : piece))}`;
}

function token(piece: string): Html {
  if (piece.endsWith(':')) return html`<span class="key">${piece.slice(0, -1)}</span>:`;
  return html`<span class="${piece.startsWith('"') ? 'string' : 'literal'}">${piece}</span>`;
}

/** HTML that cannot be injected into: whatever is put into a template is escaped unless it is HTML already. */

export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}

type Part = Html | string | number | readonly Part[];

/** @example html`<td>${anything}</td>` // `anything` is escaped, an Html value or a list of them is not */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(
    strings.map((text, index) => text + (index < parts.length ? rendered(parts[index] ?? '') : '')).join(''),
  );
}

function rendered(part: Part): string {
  if (part instanceof Html) return part.text;
  if (Array.isArray(part)) return part.map(rendered).join('');
  return escaped(String(part));
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}

/** Prose in which backticks set off code, as in the descriptions of the OpenAPI document. */
export function prose(text: string): Html {
  return html`${text.split('`').map((piece, index) => (index % 2 === 1 ? html`<code>${piece}</code>` : piece))}`;
}

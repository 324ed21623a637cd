/** A piece of code with its title and a copy button. */
import { CopyButton } from './copy-button.tsx';

export function CodeBlock({ title, code }: { readonly title: string; readonly code: string }) {
  return (
    <figure className="code-block">
      <figcaption>
        {title}
        <CopyButton text={code} what={title} />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard. */}
      <pre tabIndex={0}>
        <code>{code}</code>
      </pre>
    </figure>
  );
}

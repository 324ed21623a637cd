/**
 * The script and the style sheet of /docs. The script puts the address of this server into the examples, sends the requests of
 * the forms and shows the answers. Without it the forms stay hidden, because a browser would send empty fields, which the API
 * rejects. The browser knows the address best: the page must not depend on request headers, because it is cached, and another
 * client would get a host that somebody else made up. The page's Content-Security-Policy allows exactly this text, by its hash,
 * and requests to this server only.
 */
import { createHash } from 'node:crypto';

/** Longer answers are cut off on the page. */
const MAX_SHOWN_CHARACTERS = 50_000;

/** The server in the examples, until the script has replaced it. */
export const EXAMPLE_ORIGIN = 'http://localhost:8080';

export const docsPageScript = `
const { exampleOrigin, basePath } = document.body.dataset;
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const { currentNode } = texts;
  if (currentNode.parentElement.closest('pre, code'))
    currentNode.data = currentNode.data.replaceAll(exampleOrigin, location.origin + basePath);
}
const limit = ${MAX_SHOWN_CHARACTERS};
for (const form of document.querySelectorAll('form.try')) {
  form.hidden = false;
  const answer = form.querySelector('output');
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    let path = form.dataset.path;
    const query = new URLSearchParams();
    for (const input of form.elements) {
      const value = (input.value ?? '').trim();
      if (!input.name || value === '') continue;
      if (input.dataset.in === 'path') path = path.replace('{' + input.name + '}', encodeURIComponent(value));
      else query.append(input.name, value);
    }
    const url = basePath + path + (query.size > 0 ? '?' + query : '');
    answer.textContent = 'GET ' + url + ' …';
    try {
      const response = await fetch(url);
      let text = await response.text();
      try { text = JSON.stringify(JSON.parse(text), null, 2); } catch {}
      const shown = text.length > limit ? text.slice(0, limit) + '\\n… (cut off here)' : text;
      answer.textContent = 'GET ' + url + '\\n' + response.status + ' ' + response.statusText + '\\n\\n' + shown;
    } catch (error) {
      answer.textContent = 'GET ' + url + '\\nThe server could not be reached: ' + error.message;
    }
  });
}
`;

export const docsPageScriptHash = `sha256-${createHash('sha256').update(docsPageScript).digest('base64')}`;

export const docsPageStyle = `
:root {
  color-scheme: light dark;
  --surface: light-dark(#ffffff, #101317);
  --raised: light-dark(#f6f7f9, #181c22);
  --text: light-dark(#16191d, #e6e9ed);
  --muted: light-dark(#59626d, #a0a9b4);
  --line: light-dark(#e1e5ea, #2a3038);
  --accent: light-dark(#0b5fbd, #7ab7ff);
  --accent-soft: light-dark(#e8f1fc, #14263c);
  --string: light-dark(#0a6847, #7fd6ab);
  --literal: light-dark(#8a3ffc, #c8a6ff);
  --warning: light-dark(#7a4a00, #ffd68a);
  --warning-soft: light-dark(#fff4dc, #2e2410);
  --warning-line: light-dark(#e8c77d, #6b5322);
  --waiting: light-dark(#59626d, #a0a9b4);
  --moving: light-dark(#0b5fbd, #7ab7ff);
  --verified: light-dark(#0b6f74, #5fd0d6);
  --done: light-dark(#16703a, #6fd391);
  --failed: light-dark(#b3261e, #ff9a92);
  --mono: ui-monospace, SFMono-Regular, 'SF Mono', Menlo, Consolas, 'Liberation Mono', monospace;
  --sans: system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', Arial, sans-serif;
  --radius: 6px;
}
*, *::before, *::after { box-sizing: border-box; }
html { scroll-padding-top: 24px; -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--surface); color: var(--text); font: 16px/1.55 var(--sans); }
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: 3px; }
a:hover { text-decoration-thickness: 2px; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 2px; }
code, pre, .path { font-family: var(--mono); font-size: 0.875em; font-variant-ligatures: none; }
:not(pre) > code {
  padding: 1px 5px; border: 1px solid var(--line); border-radius: 4px; background: var(--raised);
  overflow-wrap: anywhere;
}
a > code { color: inherit; }
p { margin: 0 0 16px; max-width: 70ch; }
h1, h2, h3 { line-height: 1.25; font-weight: 650; text-wrap: balance; }
h1 { margin: 0; font-size: 28px; letter-spacing: -0.01em; }
h2 { margin: 0 0 16px; font-size: 22px; letter-spacing: -0.01em; }
h3 { margin: 0 0 8px; font-size: 17px; }
:target > h2, :target > h3 { color: var(--accent); }

.skip { position: absolute; left: 8px; top: -64px; padding: 8px 16px; background: var(--surface); z-index: 3; }
.skip:focus { top: 8px; }
.banner {
  padding: 12px 24px; border-bottom: 1px solid var(--warning-line);
  background: var(--warning-soft); color: var(--warning);
}
.banner p { margin: 0 auto; max-width: 1232px; }
.banner code { border-color: var(--warning-line); background: none; white-space: nowrap; }
.page { max-width: 1280px; margin: 0 auto; padding: 0 24px; }
.masthead { padding: 48px 0 32px; border-bottom: 1px solid var(--line); }
.masthead p { margin: 8px 0 0; color: var(--muted); }
.version {
  margin-left: 8px; padding: 2px 8px; border: 1px solid var(--line); border-radius: 99px; color: var(--muted);
  font: 13px/1.5 var(--mono); vertical-align: 4px; letter-spacing: 0;
}
.columns { display: grid; grid-template-columns: 216px minmax(0, 1fr); gap: 56px; align-items: start; }
nav { position: sticky; top: 0; max-height: 100vh; overflow-y: auto; padding: 32px 4px 32px 0; font-size: 14px; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav ul ul { margin: 2px 0 12px; padding-left: 12px; border-left: 1px solid var(--line); }
nav a { display: block; padding: 4px 0; color: var(--text); text-decoration: none; overflow-wrap: anywhere; }
nav ul ul a { color: var(--muted); }
nav a:hover { color: var(--accent); text-decoration: underline; }
main { padding: 32px 0 96px; min-width: 0; max-width: 944px; }
main:focus { outline: none; }
section { padding-bottom: 40px; }
section + section { padding-top: 40px; border-top: 1px solid var(--line); }
article { padding-top: 32px; }
article:first-of-type { padding-top: 8px; }
footer { padding: 24px 0 48px; border-top: 1px solid var(--line); color: var(--muted); font-size: 14px; }

.path {
  display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: baseline; margin: 0 0 12px; max-width: none;
  font-size: 14px; overflow-wrap: anywhere;
}
.method {
  padding: 1px 8px; border-radius: 4px; background: var(--accent-soft); color: var(--accent); font-weight: 650;
}
.also { color: var(--muted); font-family: var(--sans); }
.also code { color: var(--text); }
pre {
  margin: 0 0 16px; padding: 12px 16px; overflow-x: auto; border: 1px solid var(--line); border-radius: var(--radius);
  background: var(--raised); line-height: 1.6; font-size: 13px; tab-size: 2;
}
pre code { font-size: inherit; }
pre.command { white-space: pre-wrap; overflow-wrap: anywhere; }
pre.command code { display: block; padding-left: 2ch; text-indent: -2ch; -webkit-user-select: all; user-select: all; }
pre.command code::before { content: '$ '; color: var(--muted); }
pre .key { color: var(--accent); }
pre .string { color: var(--string); }
pre .literal { color: var(--literal); }
pre.tall { max-height: 480px; overflow-y: auto; }
form.try { margin: 0 0 24px; padding: 16px; border: 1px solid var(--line); border-radius: var(--radius); }
form.try[hidden] { display: none; }
.fields { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 6px 16px; align-items: center; font-size: 14px; }
.fields:not(:empty) { margin-bottom: 12px; }
.fields input {
  width: 100%; padding: 6px 8px; border: 1px solid var(--muted); border-radius: 4px; background: var(--surface);
  color: var(--text); font: 13px/1.4 var(--mono);
}
.fields input::placeholder { color: var(--muted); opacity: 1; }
form.try button {
  padding: 6px 14px; border: 1px solid var(--accent); border-radius: 4px; background: var(--accent-soft);
  color: var(--accent); font: 650 14px/1.5 var(--sans); cursor: pointer;
}
.answer { display: block; white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.6 var(--mono); }
.answer:not(:empty) { max-height: 480px; margin-top: 12px; padding: 12px; overflow-y: auto; background: var(--raised); }

table { width: 100%; margin: 0 0 24px; border-collapse: collapse; font-size: 14px; line-height: 1.5; }
caption { padding: 0 0 8px; text-align: left; font-weight: 650; color: var(--muted); }
th { padding: 6px 16px 6px 0; text-align: left; font-weight: 650; color: var(--muted); border-bottom: 1px solid var(--line); }
td { padding: 10px 16px 10px 0; vertical-align: top; border-bottom: 1px solid var(--line); }
th:last-child, td:last-child { padding-right: 0; }
td:first-child { width: 25%; overflow-wrap: anywhere; }
td:first-child > code { padding: 0; border: 0; background: none; font-weight: 650; }
td:first-child > code:first-child { display: inline-block; }
td:nth-child(2):not(:last-child) { width: 20%; color: var(--muted); overflow-wrap: anywhere; }
.note { display: block; margin-top: 2px; color: var(--muted); }
.optional { display: block; font-weight: 400; color: var(--muted); font-size: 13px; }
.status { white-space: nowrap; font: 650 13px/1.5 var(--mono); }
.status::before { content: ''; display: inline-block; width: 8px; height: 8px; margin-right: 8px; border-radius: 50%; background: currentColor; }
.waiting { color: var(--waiting); }
.moving { color: var(--moving); }
.verified { color: var(--verified); }
.done { color: var(--done); }
.failed { color: var(--failed); }
.failed::before { border-radius: 0; clip-path: polygon(50% 0, 100% 100%, 0 100%); }

@media (max-width: 899px) {
  html { scroll-padding-top: 64px; }
  .columns { display: block; }
  nav {
    z-index: 2; margin: 0 -24px; padding: 0 24px; overflow-x: auto; overflow-y: hidden;
    border-bottom: 1px solid var(--line); background: var(--surface); scrollbar-width: none;
  }
  nav::-webkit-scrollbar { display: none; }
  nav > ul { display: flex; gap: 20px; width: max-content; }
  nav ul ul { display: none; }
  nav a { padding: 12px 0; white-space: nowrap; }
  .masthead { padding: 32px 0 24px; }
  .fields { display: block; }
  .fields input { margin-bottom: 8px; }
}
@media (max-width: 639px) {
  .page { padding: 0 16px; }
  nav { margin: 0 -16px; padding: 0 16px; }
  .banner { padding: 12px 16px; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table, tbody, caption { display: block; }
  tr { display: block; padding: 10px 0; border-bottom: 1px solid var(--line); }
  td, td:first-child, td:nth-child(2):not(:last-child) { display: block; width: auto; padding: 1px 0; border: 0; }
}
@media print {
  nav, .skip { display: none; }
  .columns { display: block; }
  pre.tall { max-height: none; }
}
`;

/**
 * The script of /docs: puts the address of this server into the examples, sends the requests of the forms and shows the
 * answers. Without it the forms stay hidden, because a browser would send empty fields, which the API rejects.
 *
 * The browser knows the address best. The page itself must not depend on request headers: it is cached, and another client
 * would get a host that somebody else made up.
 *
 * The page's Content-Security-Policy allows exactly this text, by its hash, and requests to this server only.
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

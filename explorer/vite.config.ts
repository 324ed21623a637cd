/** How the explorer is bundled; scripts/build-explorer.mjs builds it into dist/explorer. */
// biome-ignore lint/style/noRestrictedImports: this file runs in Node.
import path from 'node:path';
import { defineConfig, type Plugin } from 'vite';

const sources = path.resolve(import.meta.dirname, '../src');

/** The folders of src/ that are pure and run in a browser; biome.json has the same list. */
const browserFolders = ['base', 'domain', 'text', 'client'];

/** Stops the build when it would bundle code of the server. */
const rejectServerCode: Plugin = {
  name: 'lanescan:reject-server-code',
  load(id) {
    const inSources = path.relative(sources, id).split(path.sep);
    const [folder = ''] = inSources;
    if (folder === '..' || browserFolders.includes(folder)) return;
    this.error(`src/${inSources.join('/')} must not be bundled: import its types only (import type)`);
  },
};

/** The server tells the websites of block explorers, as its operator has them: the table goes without. */
const dropBlockExplorers: Plugin = {
  name: 'lanescan:drop-block-explorers',
  transform: (code, id) =>
    id.endsWith('/networks-table.ts')
      ? { code: code.replace(/, "https:[^"]*"(?=\])/g, ''), map: null }
      : null,
};

// biome-ignore lint/style/noDefaultExport: Vite reads it so.
export default defineConfig({
  root: import.meta.dirname,
  // Chunks find each other below any path; src/api/routes/explorer-route.ts gives the page the path.
  base: './',
  logLevel: 'warn',
  plugins: [rejectServerCode, dropBlockExplorers],
  esbuild: { jsx: 'automatic', legalComments: 'none' },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: {
      // Directives and annotations for other bundlers.
      onwarn: (warning, warn) => {
        if (warning.code !== 'MODULE_LEVEL_DIRECTIVE' && warning.code !== 'INVALID_ANNOTATION') warn(warning);
      },
    },
  },
  // `npm run explorer:dev` beside a `lanescan demo` or `lanescan serve` on the default port.
  server: { proxy: { '/v2': 'http://127.0.0.1:8080', '/readyz': 'http://127.0.0.1:8080' } },
});

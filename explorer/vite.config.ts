/** How the explorer is bundled; scripts/build-explorer.mjs builds it into dist/explorer. */
import { defineConfig } from 'vite';

// biome-ignore lint/style/noDefaultExport: Vite reads it so.
export default defineConfig({
  root: import.meta.dirname,
  logLevel: 'warn',
  esbuild: { jsx: 'automatic', legalComments: 'none' },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: {
      // Directives and annotations for other bundlers; there is nothing to do about them here.
      onwarn: (warning, warn) => {
        if (warning.code !== 'MODULE_LEVEL_DIRECTIVE' && warning.code !== 'INVALID_ANNOTATION') warn(warning);
      },
    },
  },
  // `npm run explorer:dev` beside a `lanescan demo` or `lanescan serve` on the default port.
  server: { proxy: { '/v2': 'http://127.0.0.1:8080', '/readyz': 'http://127.0.0.1:8080' } },
});

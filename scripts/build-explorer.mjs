// Builds the explorer into dist/explorer, every asset compressed as well as it can be; what is there and newer than
// its source is left alone. It is built aside and put in place at once: a server that starts meanwhile must not see
// half of it.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'vite';

const place = path.resolve('dist/explorer');
const sources = [
  'explorer',
  'src/base',
  'src/domain',
  'src/text',
  'src/client',
  'package-lock.json',
  import.meta.filename,
];

if (!isFresh()) {
  // Whoever calls (a test run, say) may have another; it decides which React gets in.
  process.env.NODE_ENV = 'production';
  const aside = `${place}-${process.pid}`;
  mkdirSync(path.dirname(place), { recursive: true });
  await build({
    configFile: path.resolve('explorer/vite.config.ts'),
    build: { outDir: aside, emptyOutDir: true },
  });
  const assets = path.join(aside, 'assets');
  for (const file of readdirSync(assets)) {
    const bytes = readFileSync(path.join(assets, file));
    const best = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };
    writeFileSync(path.join(assets, `${file}.br`), brotliCompressSync(bytes, best));
    writeFileSync(path.join(assets, `${file}.gz`), gzipSync(bytes, { level: 9 }));
  }
  rmSync(place, { recursive: true, force: true });
  renameSync(aside, place);
}

function isFresh() {
  const builtAt = statSync(path.join(place, 'index.html'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return sources.every((source) => newest(source) < builtAt);
}

function newest(source) {
  const own = statSync(source);
  if (!own.isDirectory()) return own.mtimeMs;
  const files = readdirSync(source, { recursive: true, withFileTypes: true });
  return Math.max(...files.map((file) => statSync(path.join(file.parentPath, file.name)).mtimeMs));
}

// Writes openapi.json from the routes of the build in dist/. With --check it only compares.
import { readFileSync, writeFileSync } from 'node:fs';
import { openApiDocument } from '../dist/api/documentation/openapi.js';
import { createRoutes } from '../dist/api/routes/routes.js';

const target = new URL('../openapi.json', import.meta.url);
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const text = `${JSON.stringify(openApiDocument(createRoutes(version), version), null, 2)}\n`;

if (!process.argv.includes('--check')) {
  writeFileSync(target, text);
} else if (readFileSync(target, 'utf8') !== text) {
  console.error('openapi.json is not what the routes say. Run: npm run openapi');
  process.exit(1);
}

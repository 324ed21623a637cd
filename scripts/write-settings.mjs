// Writes what derives from the settings of the build in dist/: lanescan.schema.json and the tables of the documents.
import { readFileSync, writeFileSync } from 'node:fs';
import { settingsDocuments } from '../dist/cli/config/settings-documents.js';

const root = new URL('..', import.meta.url);
const read = (name) => readFileSync(new URL(name, root), 'utf8');
for (const [name, text] of Object.entries(settingsDocuments(read))) writeFileSync(new URL(name, root), text);

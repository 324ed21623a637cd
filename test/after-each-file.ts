/** Runs for every test file. Modules that tests import run once for a worker, so their hooks would serve one file only. */
import { afterAll } from 'vitest';
import { removeFreshFolders } from './fresh-folder.ts';

afterAll(removeFreshFolders);

/** Temporary folders of a test file, removed when the file has ended. */
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const folders: string[] = [];

export function freshFolder(): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'lanescan-cli-'));
  folders.push(folder);
  return folder;
}

export function removeFreshFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

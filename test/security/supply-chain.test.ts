/** What is installed with Lanescan: only what docs/dependencies.md names, and nothing that runs by itself. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { listenWith } from '../listening.ts';

const repository = path.resolve(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(path.join(repository, file), 'utf8');

interface LockedPackage {
  readonly version: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly devOptional?: boolean;
  readonly hasInstallScript?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
}

const manifest = JSON.parse(read('package.json')) as {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly allowScripts: Readonly<Record<string, boolean>>;
};
const locked = JSON.parse(read('package-lock.json')).packages as Readonly<Record<string, LockedPackage>>;
const packages = Object.entries(locked).filter(([place]) => place !== '');
const nameAt = (place: string) => place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
const document = read('docs/dependencies.md');

describe('the lock file', () => {
  test('has every package by its SHA-512, and names no place to fetch one from', () => {
    const loose = packages.filter(
      ([, { resolved, integrity = '' }]) => !integrity.startsWith('sha512-') || resolved !== undefined,
    );
    expect(loose.map(([place]) => place)).toEqual([]);
  });

  test('has no package with an install script but those that are known to do without', () => {
    const scripted = packages.filter(([, { hasInstallScript }]) => hasInstallScript);
    const denied = Object.fromEntries(scripted.map(([place]) => [nameAt(place), false]));
    expect(manifest.allowScripts).toEqual(denied);
  });

  test('has nothing under a license that asks for more than its text', () => {
    const harmless = ['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'Apache-2.0'];
    const runtime = packages.filter(([, { dev, devOptional }]) => !dev && !devOptional);
    const others = runtime.filter(([, { license = 'none' }]) => !harmless.includes(license));
    expect(others.map(([place, { license }]) => `${place} ${license}`)).toEqual([]);
  });
});

describe('docs/dependencies.md', () => {
  /** Everything that a package needs, by npm's way of looking from the innermost folder outwards. */
  const broughtBy = (place: string, found = new Set<string>()): Set<string> => {
    for (const name of Object.keys(locked[place]?.dependencies ?? {})) {
      const folders = place
        .split('/node_modules/')
        .map((_, index, parts) => parts.slice(0, index + 1).join('/node_modules/'));
      const places = [
        ...folders.reverse().map((folder) => `${folder}/node_modules/${name}`),
        `node_modules/${name}`,
      ];
      const at = places.find((candidate) => locked[candidate] !== undefined);
      if (at === undefined || found.has(at)) continue;
      found.add(at);
      broughtBy(at, found);
    }
    return found;
  };

  const rows = new Map(
    [...document.matchAll(/^\| `([^`]+)` \| (\S+) \| (\S+) \| [^|]+ \| (\d+)[^|]* \| [^|]+ \|$/gm)].map(
      ([, name = '', version, license, brings]) => [name, { version, license, brings: Number(brings) }],
    ),
  );

  test('names each runtime dependency, with its version, license and what it brings along', () => {
    const expected = Object.keys(manifest.dependencies).map((name) => {
      const place = `node_modules/${name}`;
      const { version, license } = locked[place] ?? { version: 'not locked' };
      return [name, { version, license, brings: broughtBy(place).size }];
    });
    expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(expected));
  });

  test('counts them', () => {
    const runtime = packages.filter(([, entry]) => !entry.dev && !entry.optional && !entry.devOptional);
    expect(document).toContain(`${runtime.length} packages in all`);
    for (const [name, version] of Object.entries(manifest.optionalDependencies)) {
      expect(document).toContain(name.replace(/\/.*/, '/'));
      expect(document).toContain(version);
    }
  });
});

describe('npm run audit', () => {
  /** The script against a registry that answers like this. */
  async function auditAgainst(listener: RequestListener) {
    const registry = await listenWith(listener);
    const child = spawn(process.execPath, ['scripts/audit.mjs'], {
      cwd: repository,
      env: { ...process.env, npm_config_registry: registry.href, npm_config_fetch_retries: '0' },
    });
    const [out, err, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ]);
    return { code, said: out + err };
  }

  const hasNpm = spawnSync('npm', ['--version']).status === 0;

  const slowly = test.runIf(hasNpm);

  slowly('says loudly when the registry does not answer such questions', { tags: 'slow' }, async () => {
    const { code, said } = await auditAgainst((_request, response) => response.writeHead(405).end());
    expect(said).toMatch(/NOT CHECKED for known vulnerabilities: the registry gave no answer \(.*405/);
    expect(code).toBe(2);
  });

  slowly(
    'fails with the names of what is vulnerable, and passes when nothing is',
    { tags: 'slow' },
    async () => {
      // npm also asks for the versions of what is vulnerable or depends on it, to see whether another one helps.
      const versionsOf = (name: string) => {
        const { version } = locked[`node_modules/${name}`] ?? { version: '1.0.0' };
        return { name, 'dist-tags': { latest: version }, versions: { [version]: { name, version } } };
      };
      const answering =
        (advisories: object): RequestListener =>
        ({ method, url = '/' }, response) =>
          response
            .writeHead(200, { 'content-type': 'application/json' })
            .end(
              JSON.stringify(method === 'POST' ? advisories : versionsOf(decodeURIComponent(url.slice(1)))),
            );
      const found = { id: 1, url: 'https://example.org/1', title: 'Too trusting', severity: 'high' };
      const advisory = { ...found, vulnerable_versions: '<99.0.0', cwe: [], cvss: { score: 0 } };
      const bad = await auditAgainst(answering({ yaml: [advisory] }));
      expect(bad.said).toMatch(/^high: yaml .*Too trusting/m);
      expect(bad.code).toBe(1);
      const good = await auditAgainst(answering({}));
      expect(good).toEqual({ code: 0, said: 'No known vulnerability in the runtime dependencies.\n' });
    },
  );
});

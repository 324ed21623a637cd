/** Programs of the system that some tests need: a browser, proxies. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/** Where a program is, installed where this process may; undefined where it is not, which the run then says. */
export function installedProgram(
  name: string,
  places: readonly string[],
  debianPackage: string,
  tests: string,
): string | undefined {
  const find = () => places.find((place) => existsSync(place));
  const found = find();
  if (found !== undefined) return found;
  const canInstall = process.getuid?.() === 0 && existsSync('/usr/bin/apt-get');
  if (canInstall) {
    const apt = (...args: readonly string[]) =>
      spawnSync('apt-get', ['-o', 'DPkg::Lock::Timeout=300', ...args], { stdio: 'ignore', timeout: 300_000 });
    apt('update');
    apt('install', '-y', '--no-install-recommends', debianPackage);
  }
  const installed = find();
  if (installed === undefined) {
    const reason = canInstall
      ? `apt-get could not install ${debianPackage}`
      : 'only root can install it, with apt-get';
    process.stderr.write(
      `\nNO ${name.toUpperCase()}: ${tests} are skipped (${reason}). Install it to run them.\n\n`,
    );
  }
  return installed;
}

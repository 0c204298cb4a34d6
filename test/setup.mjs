/**
 * Installs the development dependencies where they are missing or older than the lock file, so that every command
 * of the README works from a fresh clone.
 */
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const modified = (file) => statSync(root + file, { throwIfNoEntry: false })?.mtimeMs ?? 0;

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(
    `Node.js 20.19 or later is needed; this is ${process.version}. Get it from https://nodejs.org.`,
  );
  process.exit(1);
}

// npm writes the second of these as the last step of an installation; a few seconds lie between the two.
const isInstalled =
  modified('node_modules/.package-lock.json') + 10_000 > modified('package-lock.json');
if (!isInstalled) {
  console.log('Installing the development dependencies (once, about a minute) …');
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: process.platform === 'win32',
  });
  if (status !== 0) {
    console.error('npm ci did not finish: see its message above. Nothing else was started.');
    process.exit(1);
  }
}

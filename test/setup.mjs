/**
 * Installs the development dependencies where one that the lock file names is missing or another version, so that
 * `npm start` and `npm test` work from a fresh clone. What is installed beside them stays.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(
    `Node.js 20.19 or later is needed; this is ${process.version}. Get it from https://nodejs.org.`,
  );
  process.exit(1);
}

const packagesOf = (lockFile) => JSON.parse(readFileSync(root + lockFile, 'utf8')).packages;

// npm writes this file as the last step of an installation.
const NOTE = 'node_modules/.package-lock.json';
const isEmpty = !existsSync(root + NOTE);
const installed = isEmpty ? {} : packagesOf(NOTE);
const missing = Object.entries(packagesOf('package-lock.json')).filter(
  // Optional are those that other systems need.
  ([path, { integrity, optional }]) => !optional && installed[path]?.integrity !== integrity,
);

if (missing.length > 0) {
  const how = isEmpty ? ['ci'] : ['install', '--no-save'];
  console.log(`Installing ${missing.length} development dependencies (up to a minute) …`);
  const { status } = spawnSync('npm', [...how, '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: process.platform === 'win32',
  });
  if (status !== 0) {
    console.error(`npm ${how[0]} did not finish: see its message above. Nothing else was started.`);
    process.exit(1);
  }
}

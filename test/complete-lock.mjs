/**
 * Completes `package-lock.json` after `npm install`: a registry that does not hold the optional packages of every
 * platform leaves them out of the lock file, and `npm ci` then refuses it everywhere. They are entered by the
 * version that their parent pins, for npm to fetch on the platforms that need them.
 */
import { readFileSync, writeFileSync } from 'node:fs';

const SYSTEMS = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32'];
const PROCESSORS = ['arm64', 'arm', 'ia32', 'loong64', 'ppc64', 'riscv64', 's390x', 'x64'];

const file = new URL('../package-lock.json', import.meta.url);
const lock = JSON.parse(readFileSync(file, 'utf8'));

/** Whether a package finds another one in its own folder or one further up. */
function isLocked(parent, name) {
  for (
    let folder = parent;
    ;
    folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))
  ) {
    if (lock.packages[`${folder === '' ? '' : `${folder}/`}node_modules/${name}`]) return true;
    if (folder === '') return false;
  }
}

for (const [parent, entry] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    if (isLocked(parent, name)) continue;
    const words = name.split(/[-/]/);
    const os = SYSTEMS.find((system) => words.includes(system));
    const cpu = PROCESSORS.find((processor) => words.includes(processor));
    if (os === undefined || cpu === undefined) continue;
    const libc = words.some((word) => word.startsWith('musl')) ? ['musl'] : undefined;
    lock.packages[`node_modules/${name}`] = {
      version,
      cpu: [cpu],
      dev: true,
      ...(libc && { libc }),
      optional: true,
      os: [os],
    };
    console.log(`locked ${name} ${version}`);
  }
}
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);

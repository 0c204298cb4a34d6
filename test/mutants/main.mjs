/**
 * Changes the product in one place after the other, and looks whether a unit or workflow test notices.
 *
 * Usage: npm run mutants [-- <folders or files of nodes/MediaGeneration …>]
 */
import { Stryker } from '@stryker-mutator/core';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const rooms = 'nodes/MediaGeneration';
const asked = process.argv.slice(2);
const parts =
  asked.length > 0 ? asked : ['callback', 'create', 'suspend', 'wait', 'run/readTask.ts'];

const missing = parts.filter((part) => !existsSync(join(root, rooms, part)));
if (missing.length > 0) {
  console.error(`There is no ${missing.join(', ')} in ${rooms}.`);
  process.exit(1);
}

process.chdir(root);

const isNoticed = ({ status }) => status === 'Killed' || status === 'Timeout';
const placeOf = ({ start, end }) =>
  `${start.line}:${start.column - 1}-${end.line}:${end.column - 1}`;

/** Whether a test has noticed each change, by what it is. */
const changes = new Map();
let mutate = parts.map((part) => join(rooms, part.endsWith('.ts') ? part : `${part}/**/*.ts`));
// The unit tests are quicker, so the workflows are run for what is left alone.
for (const tests of ['unit', 'workflow']) {
  if (mutate.length === 0) break;
  process.env.MUTANTS_TESTS = tests;
  await new Stryker({ configFile: 'test/mutants/stryker.config.mjs', mutate }).runMutationTest();
  const { files } = JSON.parse(readFileSync('test/artefacts/mutants.json', 'utf8'));
  const left = new Set();
  for (const [file, { mutants }] of Object.entries(files)) {
    for (const change of mutants) {
      const place = `${file}:${placeOf(change.location)}`;
      const name = `${place} ${change.mutatorName} ${change.replacement}`;
      if (change.status === 'CompileError') continue;
      // Computed when the file is loaded. The unit tests may not tell, where one of them loads the file anew.
      if (change.status === 'Ignored') {
        changes.delete(name);
        continue;
      }
      changes.set(name, isNoticed(change) || changes.get(name) === true);
      if (!changes.get(name)) left.add(place);
    }
  }
  mutate = [...left];
}

for (const [name, noticed] of changes) if (!noticed) console.log(`Nobody noticed: ${name}`);
for (const part of parts) {
  const inPart = [...changes].filter(([name]) => name.startsWith(`${rooms}/${part}`));
  const noticed = inPart.filter(([, isKilled]) => isKilled).length;
  const share = ((100 * noticed) / inPart.length).toFixed(1);
  console.log(`${part}: ${noticed} of ${inPart.length} noticed, ${share} %`);
}

/**
 * Changes the product in one place after the other, and looks whether a unit or workflow test notices.
 *
 * Usage: npm run mutants [-- <folders or files of nodes/MediaGeneration …>]
 */
import { Stryker } from '@stryker-mutator/core';
import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const rooms = 'nodes/MediaGeneration';
const asked = process.argv.slice(2);
const parts = asked.length > 0 ? asked : ['callback', 'create', 'suspend', 'wait'];

const missing = parts.filter((part) => !existsSync(join(root, rooms, part)));
if (missing.length > 0) {
  console.error(`There is no ${missing.join(', ')} in ${rooms}.`);
  process.exit(1);
}

process.chdir(root);
await new Stryker({
  configFile: 'test/mutants/stryker.config.mjs',
  mutate: parts.map((part) => join(rooms, part.endsWith('.ts') ? part : `${part}/**/*.ts`)),
}).runMutationTest();

/** Of each folder: how many changes there were, and how many of them a test has noticed. */
const { files } = JSON.parse(readFileSync('test/artefacts/mutants.json', 'utf8'));
const folders = new Map();
for (const [file, { mutants }] of Object.entries(files)) {
  const [folder] = relative(rooms, file).split(/[\\/]/);
  const of = folders.get(folder) ?? { noticed: 0, all: 0 };
  const counted = mutants.filter(({ status }) => status !== 'Ignored' && status !== 'CompileError');
  of.all += counted.length;
  of.noticed += counted.filter(({ status }) => status === 'Killed' || status === 'Timeout').length;
  folders.set(folder, of);
}
for (const [folder, { noticed, all }] of folders) {
  console.log(`${folder}: ${noticed} of ${all} noticed, ${((100 * noticed) / all).toFixed(1)} %`);
}

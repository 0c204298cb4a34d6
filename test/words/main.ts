/** Writes all texts of the package on one page, for somebody who reads them in one go: `npm run words`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

import { messagesByFile, panels } from './texts';

const ROOT = resolve(__dirname, '../..');
const PAGE = join(ROOT, 'test/artefacts/words.md');

const lines = ['# All texts of the package', '', '## What the panels show'];
for (const { name, texts } of panels()) {
	lines.push('', `### ${name}`, '');
	for (const { place, text } of texts) lines.push(`- ${place}: ${text}`);
}
lines.push('', '## What the code says', '', '`…` stands for what differs from case to case.');
for (const { file, messages } of messagesByFile(ROOT)) {
	lines.push('', `### ${file}`, '', ...messages.map((message) => `- ${message}`));
}

mkdirSync(join(ROOT, 'test/artefacts'), { recursive: true });
writeFileSync(PAGE, `${lines.join('\n')}\n`);
console.log(
	`${relative(ROOT, PAGE)}: ${lines.filter((line) => line.startsWith('- ')).length} texts`,
);

/** Writes all texts of the package on one page, for somebody who reads them in one go: `npx tsx scripts/words.ts`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { MediaGenerationApi } from '../credentials/MediaGenerationApi.credentials';
import { nodes, ROOT, sourceFiles, textsIn } from '../test/unit/repository';

const PAGE = 'test/artefacts/words.md';

/** The fields of a description that somebody reads, a person or a language model. */
const READ = new Set([
	'displayName',
	'description',
	'hint',
	'message',
	'placeholder',
	'action',
	'name',
	'eventTriggerDescription',
	'activationMessage',
	'header',
	'inactive',
	'active',
	'searchHint',
	'relationHint',
	'propertyHint',
]);

/** The texts of a description, in its own order, each with its place: `- Options › Dry Run › description: …`. */
function textsOf(value: unknown, path: readonly string[] = []): string[] {
	if (Array.isArray(value)) return value.flatMap((each) => textsOf(each, path));
	if (typeof value !== 'object' || value === null) return [];
	const fields = value as Record<string, unknown>;
	// The name of a choice is shown; that of a parameter is not, since it has a label.
	const isChoice = 'value' in fields;
	const label = String(fields.displayName ?? (isChoice ? fields.name : ''));
	const here = label === '' ? path : [...path, label.slice(0, 40)];
	return Object.entries(fields).flatMap(([key, each]) => {
		const isRead = READ.has(key) && (key !== 'name' || isChoice);
		// A text of a tool is the default of its field.
		const isShown = isRead || (key === 'default' && fields.name === 'toolDescription');
		if (typeof each !== 'string') return textsOf(each, here);
		return isShown && each !== '' ? [`- ${[...here, key].join(' › ')}: ${each}`] : [];
	});
}

/** The lines of the page. */
function pageOfTexts(): string[] {
	const { displayName, properties } = new MediaGenerationApi();
	const panels = [{ displayName, properties }, ...nodes].flatMap((panel) => [
		...['', `### ${panel.displayName}`, ''],
		...new Set(textsOf(panel)),
	]);
	// The texts of the descriptions stand above, as n8n gets them.
	const others = sourceFiles.filter((file) => !/\/fields\/|\.node\.ts$/.test(file));
	const messages = others.flatMap((file) => {
		const texts = textsIn(file).map((text) => `- ${text}`);
		return texts.length === 0 ? [] : ['', `### ${file}`, '', ...texts];
	});
	return [
		...['# All texts of the package', '', '## What the panels show', ...panels],
		...['', '## What the code says', '', '`…` stands for what differs from case to case.'],
		...messages,
	];
}

function main(): void {
	const lines = pageOfTexts();
	const path = join(ROOT, PAGE);
	mkdirSync(dirname(path), { recursive: true });
	writeFileSync(path, `${lines.join('\n')}\n`);
	console.log(`${PAGE}: ${lines.filter((line) => line.startsWith('- ')).length} texts`);
}

main();

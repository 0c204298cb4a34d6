/** Writes all texts of the package on one page, for somebody who reads them in one go: `npm run words`. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { INodeTypeDescription } from 'n8n-workflow';
import ts from 'typescript';

import { MediaGenerationApi } from '../../credentials/MediaGenerationApi.credentials';
import { nodePanel } from '../e2e/shownInPictures';

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

interface Text {
	/** Where it stands, such as `Options › Dry Run › description`. */
	place: string;
	text: string;
}

/** The texts of a description, in its own order, each once. */
function textsOf(value: unknown, path: readonly string[] = []): Text[] {
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
		return isShown && each !== '' ? [{ place: [...here, key].join(' › '), text: each }] : [];
	});
}

const once = (texts: readonly Text[]): Text[] => [
	...new Map(texts.map((text) => [`${text.place}\n${text.text}`, text])).values(),
];

/** The texts of the credential and of the three nodes, as n8n gets them. */
export function panels(): Array<{ name: string; texts: Text[] }> {
	const { displayName, properties } = new MediaGenerationApi();
	const nodes = ['MediaGeneration', 'MediaGenerationTrigger', 'MediaGenerationCredits'].map(
		(name) => nodePanel(name) as INodeTypeDescription,
	);
	return [
		{ name: displayName, texts: once(textsOf(properties)) },
		...nodes.map((node) => ({ name: node.displayName, texts: once(textsOf(node)) })),
	];
}

/** The texts of several words that stand in a file, with `…` for what differs from case to case. */
function messagesIn(path: string): string[] {
	const found: string[] = [];
	const visit = (node: ts.Node): void => {
		if (ts.isImportDeclaration(node)) return;
		if (ts.isStringLiteralLike(node)) found.push(node.text);
		if (ts.isTemplateExpression(node)) {
			const spans = node.templateSpans.map(({ literal }) => `…${literal.text}`);
			found.push(node.head.text + spans.join(''));
		}
		ts.forEachChild(node, visit);
	};
	visit(ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true));
	return [...new Set(found)].filter((text) => /\p{L}.*\s\S*\p{L}/u.test(text));
}

/** The messages of each source file that is no description of a panel. */
export function messagesByFile(root: string): Array<{ file: string; messages: string[] }> {
	return ['credentials', 'nodes']
		.flatMap((folder) =>
			readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
				`${folder}/${name}`.replaceAll('\\', '/'),
			),
		)
		.filter((file) => file.endsWith('.ts') && !/\/fields\/|\.node\.ts$/.test(file))
		.map((file) => ({ file, messages: messagesIn(join(root, file)) }))
		.filter(({ messages }) => messages.length > 0);
}

function main(root: string): void {
	const lines = ['# All texts of the package', '', '## What the panels show'];
	for (const { name, texts } of panels()) {
		lines.push('', `### ${name}`, '');
		for (const { place, text } of texts) lines.push(`- ${place}: ${text}`);
	}
	lines.push('', '## What the code says', '', '`…` stands for what differs from case to case.');
	for (const { file, messages } of messagesByFile(root)) {
		lines.push('', `### ${file}`, '', ...messages.map((message) => `- ${message}`));
	}

	mkdirSync(join(root, 'test/artefacts'), { recursive: true });
	writeFileSync(join(root, PAGE), `${lines.join('\n')}\n`);
	console.log(`${PAGE}: ${lines.filter((line) => line.startsWith('- ')).length} texts`);
}

if (require.main === module) main(resolve(__dirname, '../..'));

import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { INodeProperties, INodePropertyCollection, INodeTypeDescription } from 'n8n-workflow';
import ts from 'typescript';

import { MediaGenerationApi } from '../../credentials/MediaGenerationApi.credentials';
import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node.ts';
import { MediaGenerationCredits } from '../../nodes/MediaGeneration/MediaGenerationCredits.node.ts';
import { MediaGenerationTrigger } from '../../nodes/MediaGeneration/MediaGenerationTrigger.node.ts';

/** This repository, as the tests see it that are about its files. */

export const ROOT = resolve(__dirname, '../..');

/** @param path from the root */
export const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** The files of a folder and of the folders in it, as paths from the root. */
export const filesIn = (folder: string, ending = '') =>
	readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
		.map((name) => join(folder, name).replaceAll('\\', '/'))
		.filter((path) => path.endsWith(ending));

/** What the package is built from. */
export const sourceFiles = [...filesIn('nodes', '.ts'), ...filesIn('credentials', '.ts')];

/** Visits all parts of a source, each before the parts in it. */
export function visitSource(path: string, visit: (node: ts.Node, source: ts.SourceFile) => void) {
	const source = ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest, true);
	const all = (node: ts.Node): void => {
		visit(node, source);
		ts.forEachChild(node, all);
	};
	all(source);
}

/** A text as it is written in the code, with `…` for what differs from case to case; undefined for what is no text. */
export function textOf(node: ts.Node): string | undefined {
	if (ts.isStringLiteralLike(node)) return node.text;
	if (!ts.isTemplateExpression(node)) return undefined;
	const parts = [node.head, ...node.templateSpans.map(({ literal }) => literal)];
	return parts.map(({ text }) => text).join('…');
}

/** The texts of several words in a source file. */
export function textsIn(path: string): string[] {
	const texts = new Set<string>();
	visitSource(path, (node) => texts.add(textOf(node) ?? ''));
	return [...texts].filter((text) => /\p{L}.*\s\S|\S\s.*\p{L}/su.test(text));
}

/** The descriptions of the nodes. */
export const nodes: INodeTypeDescription[] = [
	new MediaGeneration().description,
	new MediaGenerationTrigger().description,
	new MediaGenerationCredits().description,
];

const flatten = (all: INodeProperties[]): INodeProperties[] =>
	all.flatMap((property) => [
		property,
		...(property.type === 'collection' ? flatten(property.options as INodeProperties[]) : []),
		...(property.type === 'fixedCollection'
			? (property.options as INodePropertyCollection[]).flatMap(({ values }) => flatten(values))
			: []),
	]);

/** All parameters and options of the nodes, also those within collections. */
export const parameters = nodes.flatMap((node) => flatten(node.properties));

/** The same, with those of the credential. */
export const properties = [...flatten(new MediaGenerationApi().properties), ...parameters];

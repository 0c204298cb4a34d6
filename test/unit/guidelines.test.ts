import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { INodeProperties, INodePropertyCollection } from 'n8n-workflow';
import ts from 'typescript';

import { MediaGenerationApi } from '../../credentials/MediaGenerationApi.credentials';
import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
import { MediaGenerationCredits } from '../../nodes/MediaGeneration/MediaGenerationCredits.node';
import { MediaGenerationTrigger } from '../../nodes/MediaGeneration/MediaGenerationTrigger.node';

/** What n8n's UX guidelines ask for and its linter does not check. */

const ROOT = resolve(__dirname, '../..');

/** All parameters and options, also those within collections. */
const flatten = (properties: INodeProperties[]): INodeProperties[] =>
	properties.flatMap((property) => [
		property,
		...(property.type === 'collection' ? flatten(property.options as INodeProperties[]) : []),
		...(property.type === 'fixedCollection'
			? (property.options as INodePropertyCollection[]).flatMap(({ values }) => flatten(values))
			: []),
	]);

const properties = [
	new MediaGenerationApi().properties,
	...[MediaGeneration, MediaGenerationTrigger, MediaGenerationCredits].map(
		(Node) => new Node().description.properties,
	),
].flatMap(flatten);

/** Every text of the sources that is more than a word, with the places of its variables left out. */
function textsIn(path: string): string[] {
	const texts: string[] = [];
	const visit = (node: ts.Node): void => {
		if (ts.isStringLiteralLike(node)) texts.push(node.text);
		if (ts.isTemplateExpression(node)) {
			texts.push(
				[node.head, ...node.templateSpans.map(({ literal }) => literal)]
					.map((part) => part.text)
					.join('…'),
			);
		}
		ts.forEachChild(node, visit);
	};
	visit(ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest));
	return texts.filter((text) => /\S \S/.test(text));
}

const texts = ['nodes', 'credentials'].flatMap((folder) =>
	readdirSync(join(ROOT, folder), { recursive: true })
		.map((name) => join(ROOT, folder, String(name)))
		.filter((path) => path.endsWith('.ts'))
		.flatMap(textsIn),
);

it('shows examples in placeholders', () => {
	const placeholders = properties
		// That of a collection is the label of its button.
		.filter(({ type, placeholder }) => !/collection$/i.test(type) && placeholder !== undefined)
		.map(({ placeholder }) => placeholder);
	expect(placeholders.length).toBeGreaterThan(5);
	expect(placeholders.filter((placeholder) => !placeholder?.startsWith('e.g. '))).toEqual([]);
});

it('names actions without articles, and with what they act on', () => {
	const actions = properties
		.filter(({ name }) => name === 'operation')
		.flatMap(({ options = [] }) => options)
		.map((option) => ('action' in option ? String(option.action) : ''));
	expect(actions.length).toBeGreaterThan(5);
	expect(actions.filter((action) => /\b(an?|the)\b/i.test(action))).toEqual([]);
	expect(actions.filter((action) => !/\b(image|video|task|credit)\b/.test(action))).toEqual([]);
});

it('frightens nobody with the words error, problem, failure or mistake', () => {
	expect(texts.length).toBeGreaterThan(100);
	// A setting and a field are called as they are called; one choice is to stop as n8n does with an error.
	const theirs =
		/'(On Error|error)'|Settings → On Error → 'Continue \(using error output\)'|^Stop with an Error$/g;
	const own = texts.map((text) => text.replace(theirs, ''));
	expect(own.filter((text) => /\b(error|problem|failure|mistake)s?\b/i.test(text))).toEqual([]);
});

it('puts parameters in messages into single quotation marks', () => {
	const named = texts.filter((text) => /\b[Pp]arameter /.test(text));
	expect(named.length).toBeGreaterThan(5);
	expect(named.filter((text) => !/\b[Pp]arameter '/.test(text))).toEqual([]);
});

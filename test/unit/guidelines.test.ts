import type { INodePropertyOptions } from 'n8n-workflow';

import { nodes, properties, sourceFiles, textsIn } from './repository';

/** What n8n's guidelines ask for, and no rule of its linter checks. */

const texts = sourceFiles.flatMap(textsIn);

it('shows examples in placeholders', () => {
	const placeholders = properties
		// That of a collection is the label of its button.
		.filter(({ type, placeholder }) => !/collection$/i.test(type) && placeholder !== undefined)
		.map(({ placeholder }) => placeholder);
	expect(placeholders.length).toBeGreaterThan(5);
	expect(placeholders.filter((placeholder) => !placeholder?.startsWith('e.g. '))).toEqual([]);
});

it('has hints of at most 120 characters', () => {
	const hints = properties.flatMap(({ hint }) => hint ?? []);
	expect(hints.length).toBeGreaterThan(5);
	expect(hints.filter((hint) => hint.length > 120)).toEqual([]);
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

it("names values that there are in the hints for n8n's own builder", () => {
	const hints = [
		...nodes.flatMap(({ builderHint }) => builderHint?.searchHint ?? []),
		...properties.flatMap(({ builderHint }) => builderHint?.propertyHint ?? []),
	];
	const choices = properties
		.filter(({ type }) => type === 'options' || type === 'multiOptions')
		.flatMap(({ options = [] }) => (options as INodePropertyOptions[]).map(({ value }) => value));
	const names = new Set([...properties.map(({ name }) => name), ...choices, 'resultUrls']);
	const named = hints.flatMap((hint) => [...hint.matchAll(/'(\w+)'/g)].map(([, name]) => name));
	expect(named.length).toBeGreaterThan(5);
	expect(named.filter((name = '') => !names.has(name))).toEqual([]);
});

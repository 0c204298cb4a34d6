import type { INodePropertyOptions } from 'n8n-workflow';

import { nodes, properties, read } from './repository';

/**
 * Rules of n8n's linter for community nodes that are newer than the version which is installed here, as far as a
 * description or a file can be asked for them.
 *
 * @see https://github.com/n8n-io/n8n/tree/master/packages/%40n8n/eslint-plugin-community-nodes/docs/rules
 */

const NODES = 'nodes/MediaGeneration';

const lists = properties.filter(({ type }) => type === 'options' || type === 'multiOptions');

it('hint-max-length: a hint has at most 120 characters', () => {
	const hints = properties.flatMap(({ hint }) => hint ?? []);
	expect(hints.length).toBeGreaterThan(5);
	expect(hints.filter((hint) => hint.length > 120)).toEqual([]);
});

it('no-duplicate-param-options, no-asterisk-in-option-names: the choices of a list differ', () => {
	expect(lists.length).toBeGreaterThan(5);
	for (const { options = [] } of lists) {
		const choices = options as INodePropertyOptions[];
		expect(new Set(choices.map(({ name }) => name)).size).toBe(choices.length);
		expect(new Set(choices.map(({ value }) => value)).size).toBe(choices.length);
		expect(choices.filter(({ name }) => name.includes('*'))).toEqual([]);
	}
});

it('single-credential-per-node: a node takes one credential', () => {
	expect(nodes.map(({ credentials = [] }) => credentials.length)).toEqual([1, 1, 1]);
});

describe.each(['MediaGeneration', 'MediaGenerationTrigger', 'MediaGenerationCredits'])(
	'%s',
	(name) => {
		it('no-ai-codex-category, no-codex-subcategories: its codex is valid', () => {
			// package.test.ts has the category.
			expect(JSON.parse(read(`${NODES}/${name}.node.json`))).not.toHaveProperty('subcategories');
		});

		it('no-hardcoded-ids: its source has no id of an account or a partner', () => {
			const source = read(`${NODES}/${name}.node.ts`);
			expect(source).not.toMatch(
				/(partner|affiliate|reseller|account|tenant|customer|client)_?id['"]?\s*[:=]\s*['"`]/i,
			);
			// What names one node, one execution or one file.
			expect(source).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}/i);
		});
	},
);

/** Light of a colour, as WCAG reckons it. */
function luminance(colour: string): number {
	const [red = 0, green = 0, blue = 0] = [1, 3, 5]
		.map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
		.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
	return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
	const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
	return (light + 0.05) / (dark + 0.05);
}

it.each([
	['mediaGeneration.svg', '#ffffff'],
	['mediaGeneration.dark.svg', '#2b2b2b'],
])('icon-contrast: the largest shapes of %s are seen on %s', (file, background) => {
	const svg = read(`${NODES}/${file}`).replace(/<mask.*?<\/mask>/s, '');
	// The picture and the circle; what is drawn on these may be lighter.
	const shapes = [...svg.matchAll(/<(?:rect|circle)[^>]* (?:rx|r)="1[05]\S*" fill="(#\w{6})"/g)];
	expect(shapes).toHaveLength(2);
	for (const [, colour = ''] of shapes) {
		expect(contrast(colour, background)).toBeGreaterThanOrEqual(3);
	}
});

describe("the hints for n8n's own builder", () => {
	const hints = [
		...nodes.flatMap(({ builderHint }) => builderHint?.searchHint ?? []),
		...properties.flatMap(({ builderHint }) => builderHint?.propertyHint ?? []),
	];

	it('name values that there are', () => {
		const names = new Set([
			...properties.map(({ name }) => name),
			...lists.flatMap(({ options = [] }) =>
				(options as INodePropertyOptions[]).map(({ value }) => String(value)),
			),
			'resultUrls',
		]);
		const named = hints.flatMap((hint) => [...hint.matchAll(/'(\w+)'/g)].map(([, name]) => name));
		expect(named.length).toBeGreaterThan(5);
		expect(named.filter((name = '') => !names.has(name))).toEqual([]);
	});
});

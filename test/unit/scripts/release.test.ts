import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { placeholders, writeAddresses, wrongAddresses } from '../../../scripts/release';
import { filesIn, ROOT } from '../repository';

/** A copy of all that has an address in it, in which the owner has decided nothing yet. */
let copy: string;
beforeEach(() => {
	copy = mkdtempSync(join(tmpdir(), 'media-generation-release-'));
	const files = ['package.json', 'README.md', 'CODE_OF_CONDUCT.md', 'docs/installation.md'];
	for (const name of [...files, 'credentials', 'nodes']) {
		cpSync(join(ROOT, name), join(copy, name), { recursive: true });
	}
	choose('https://repository.invalid/unset', 'The authors of this', 'unset@repository.invalid');
	for (const page of ['README.md', 'docs/installation.md']) {
		writeFileSync(join(copy, page), 'The package is not on npm yet.');
	}
	writeFileSync(join(copy, 'CODE_OF_CONDUCT.md'), 'Write to conduct@repository.invalid');
	writeAddresses(copy);
});
afterEach(() => rmSync(copy, { recursive: true, force: true }));

const read = (file: string) => readFileSync(join(copy, file), 'utf8');
const change = (file: string, from: string | RegExp, to: string) => {
	expect(read(file)).toMatch(from);
	writeFileSync(join(copy, file), read(file).replace(from, to));
};
const choose = (url: string, name: string, email: string) => {
	change('package.json', /"url": "git\+[^"]*"/, `"url": "git+${url}.git"`);
	change('package.json', /"name": "[^"]*"(?=,\s+"email")/, `"name": "${name}"`);
	change('package.json', /"email": "[^"]*"/, `"email": "${email}"`);
};
const sources = () =>
	['credentials', 'nodes']
		.flatMap((folder) => filesIn(folder))
		.filter((file) => /\.(ts|json)$/.test(file));

test('all addresses follow from the repository that package.json names', () => {
	expect(wrongAddresses(ROOT)).toEqual([]);
});

test('nothing that is not decided ships, and no link in a panel leads to a repository that does not exist', () => {
	expect(placeholders(copy)).toEqual([
		'package.json: "https://repository.invalid/unset#readme"',
		'package.json: "https://repository.invalid/unset/issues"',
		'package.json: "The authors of this"',
		'package.json: "unset@repository.invalid"',
		'package.json: "git+https://repository.invalid/unset.git"',
		'CODE_OF_CONDUCT.md: conduct@repository.invalid',
		'README.md: not on npm yet',
		'docs/installation.md: not on npm yet',
	]);
	const links = sources().flatMap(
		(file) => read(file).match(/https:\/\/[^'"`\s]+#(credential|readme)/g) ?? [],
	);
	expect(links).toHaveLength(7);
	expect(links.filter((link) => !link.startsWith('https://docs.n8n.io/'))).toEqual([]);
});

test('a repository that is chosen is written everywhere', () => {
	choose('https://github.com/somebody/media', 'Somebody', 'somebody@example.org');
	change('CODE_OF_CONDUCT.md', 'repository.invalid', 'example.org');
	for (const page of ['README.md', 'docs/installation.md']) change(page, 'not on', 'on');
	writeAddresses(copy);
	expect(placeholders(copy)).toEqual([]);
	expect(wrongAddresses(copy)).toEqual([]);
	expect(JSON.parse(read('package.json'))).toMatchObject({
		homepage: 'https://github.com/somebody/media#readme',
		bugs: { url: 'https://github.com/somebody/media/issues' },
	});
	const links = sources().flatMap(
		(file) => read(file).match(/https:\/\/github\.com\/somebody\/media#(credential|readme)/g) ?? [],
	);
	expect(links).toHaveLength(7);
});

test('a place that was renamed is not passed over', () => {
	change('credentials/MediaGenerationApi.credentials.ts', '#credentials', '#credential');
	expect(() => wrongAddresses(copy)).toThrow('has 0 addresses in place of 1');
});

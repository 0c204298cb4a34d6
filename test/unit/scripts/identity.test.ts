import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import {
	fillIdentity,
	missingIdentity,
	outdatedAddresses,
	repositoryUrl,
	UNSET_HOST,
} from '../../../scripts/release/identity';
import { filesIn, read as readPage, ROOT } from '../repository';

describe('the identity of the package', () => {
	/** A copy of all that has an address in it. */
	let copy: string;
	beforeEach(() => {
		copy = mkdtempSync(join(tmpdir(), 'media-generation-identity-'));
		for (const name of ['package.json', 'CODE_OF_CONDUCT.md', 'credentials', 'nodes']) {
			cpSync(join(ROOT, name), join(copy, name), { recursive: true });
		}
	});
	afterEach(() => rmSync(copy, { recursive: true, force: true }));

	const read = (file: string) => readFileSync(join(copy, file), 'utf8');
	const sources = () =>
		['credentials', 'nodes']
			.flatMap((folder) => filesIn(folder))
			.filter((file) => /\.(ts|json)$/.test(file));
	const change = (file: string, from: string | RegExp, to: string) => {
		expect(read(file)).toMatch(from);
		writeFileSync(join(copy, file), read(file).replace(from, to));
	};
	const choose = (url: string, name = 'Somebody', email = 'somebody@example.org') => {
		change('package.json', /"url": "git\+[^"]*"/, `"url": "git+${url}.git"`);
		change('package.json', /"name": "[^"]*"(?=,\s+"email")/, `"name": "${name}"`);
		change('package.json', /"email": "[^"]*"/, `"email": "${email}"`);
	};

	test('all addresses follow from the repository that package.json names', () => {
		expect(fillIdentity(copy)).toEqual([]);
	});

	test('no link that n8n shows leads to a repository that does not exist yet', () => {
		choose(`https://${UNSET_HOST}/unset`);
		fillIdentity(copy);
		const links = sources().flatMap(
			(file) => read(file).match(/https:\/\/[^'"`\s]+#(credential|readme)/g) ?? [],
		);
		expect(links).toHaveLength(7);
		expect(links.filter((link) => !link.startsWith('https://docs.n8n.io/'))).toEqual([]);
	});

	test('to look whether all addresses are right writes nothing', () => {
		choose('https://github.com/somebody/media');
		const before = read('package.json');
		expect([...outdatedAddresses(copy).keys()]).toContain('package.json');
		expect(read('package.json')).toBe(before);
	});

	test('a chosen repository is written everywhere', () => {
		const before = repositoryUrl(copy);
		choose('https://github.com/somebody/media');
		change('CODE_OF_CONDUCT.md', 'conduct@repository.invalid', 'conduct@example.org');
		expect(fillIdentity(copy)).toHaveLength(5);
		expect(missingIdentity(copy)).toEqual([]);
		expect(read('credentials/MediaGenerationApi.credentials.ts')).toContain(
			"'https://github.com/somebody/media#credential'",
		);
		expect(JSON.parse(read('nodes/MediaGeneration/MediaGeneration.node.json'))).toMatchObject({
			resources: {
				credentialDocumentation: [{ url: 'https://github.com/somebody/media#credential' }],
				primaryDocumentation: [{ url: 'https://github.com/somebody/media#readme' }],
			},
		});
		expect(JSON.parse(read('package.json'))).toMatchObject({
			homepage: 'https://github.com/somebody/media#readme',
			bugs: { url: 'https://github.com/somebody/media/issues' },
		});
		const texts = ['package.json', ...sources()].map(read);
		expect(texts.filter((text) => text.includes(before))).toEqual([]);
		expect(fillIdentity(copy)).toEqual([]);
	});

	test('what is not chosen is named, so that a release can stop', () => {
		choose(`https://${UNSET_HOST}/unset`, 'The authors of this', `unset@${UNSET_HOST}`);
		expect(missingIdentity(copy)).toEqual([
			expect.stringContaining('"repository.url" is not set'),
			expect.stringContaining('"author.name" names nobody'),
			expect.stringContaining('"author.email" is not set'),
			expect.stringContaining('CODE_OF_CONDUCT.md: the address is not set'),
		]);
		choose('https://example.org/media');
		change('CODE_OF_CONDUCT.md', 'conduct@repository.invalid', 'conduct@example.org');
		expect(missingIdentity(copy)).toEqual([expect.stringContaining('is no GitHub repository')]);
	});

	test('a place that was renamed is not passed over', () => {
		change('credentials/MediaGenerationApi.credentials.ts', '#credential', '#credentials');
		expect(() => fillIdentity(copy)).toThrow('has 0 addresses in place of 1');
	});
});

describe('the pages', () => {
	const pages = ['.', 'docs', 'examples', '.github', '.github/ISSUE_TEMPLATE', '.github/workflows']
		.flatMap((folder) => readdirSync(join(ROOT, folder)).map((name) => join(folder, name)))
		.filter((path) => /\.(md|yml|json)$/.test(path) && !path.startsWith('package'));

	it.each(pages)('%s names no home of its own and no mailbox', (page) => {
		const text = readPage(page);
		expect(text.match(/github\.com\/n8n-nodes-[^\s)]*/g) ?? []).toEqual([]);
		const mailboxes = text.match(/[\w.+-]+@[a-z][\w-]*\.[a-z]{2,}\b/gi) ?? [];
		expect(mailboxes.filter((mailbox) => !mailbox.endsWith('.invalid'))).toEqual([]);
	});
});

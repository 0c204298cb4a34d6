import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { checkPages, outdatedFigures } from '../../../scripts/release/checks';

describe('a release', () => {
	let root: string;
	beforeEach(() => {
		root = mkdtempSync(join(tmpdir(), 'media-generation-release-'));
		mkdirSync(join(root, 'docs'));
		for (const page of ['README.md', 'docs/installation.md']) writeFileSync(join(root, page), '');
	});
	afterEach(() => rmSync(root, { recursive: true, force: true }));

	it('is refused while a page says that the package is not on npm yet', () => {
		expect(checkPages(root).open).toEqual([]);
		writeFileSync(join(root, 'README.md'), 'The package is not on npm yet.');
		expect(checkPages(root).open).toEqual(['README.md says that the package is not on npm yet']);
	});

	it('is refused with figures that are older than the code', () => {
		const measured = {
			batch: { at: '2026-03-02T00:00:00Z' },
			callback: { at: '2026-02-28T00:00:00Z' },
		};
		expect(outdatedFigures(measured, new Date('2026-03-01T00:00:00Z'))).toEqual([
			'"callback" was measured before the code changed: npm run bench -- --only callback',
		]);
	});
});

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { readHeapSnapshot } from '../../bench/heapSnapshot';

const KEEPER = `
	const kept = new Map();
	module.exports = {
		keep: (value) => void kept.set(kept.size, value),
		make: () => Array.from({ length: 100_000 }, (_, index) => index + 0.5),
	};`;

const MAIN = `
	const { writeHeapSnapshot } = require('node:v8');
	const { keep, make } = require('./keeper.cjs');
	writeHeapSnapshot('none.heapsnapshot');
	const handed = make();
	writeHeapSnapshot('handed.heapsnapshot');
	keep(make());
	writeHeapSnapshot('kept.heapsnapshot');
	console.log(handed.length);`;

test('what a module keeps is told from what it has handed to others', () => {
	const folder = mkdtempSync(join(tmpdir(), 'media-generation-heap-'));
	try {
		writeFileSync(join(folder, 'keeper.cjs'), KEEPER);
		writeFileSync(join(folder, 'main.cjs'), MAIN);
		execFileSync(process.execPath, ['main.cjs'], { cwd: folder });
		const bytesOf = (name: string) =>
			readHeapSnapshot(readFileSync(join(folder, `${name}.heapsnapshot`))).bytesKeptBy((path) =>
				path.endsWith('keeper.cjs'),
			);
		const before = bytesOf('none');
		expect(before).toBeGreaterThan(0);
		expect(bytesOf('handed') - before).toBeLessThan(10_000);
		const kept = bytesOf('kept') - before;
		expect(kept).toBeGreaterThan(800_000);
		expect(kept).toBeLessThan(830_000);
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}, 30_000);

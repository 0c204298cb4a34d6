import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const HOUSE = join(__dirname, '../../nodes/MediaGeneration');

/** What happens to a task, from the ground up: a room imports its own files and those of the rooms before it. */
const ROOMS = ['shared', 'service', 'report', 'callback', 'plan', 'create', 'wait', 'run'];

const MAX_LINES = 250;

const files = readdirSync(HOUSE, { recursive: true, encoding: 'utf8' })
	.filter((path) => path.endsWith('.ts'))
	.map((path) => path.replaceAll('\\', '/'));

const imports = (file: string) =>
	[...readFileSync(join(HOUSE, file), 'utf8').matchAll(/from '(\.\.?\/[^']+)'/g)].map(([, path]) =>
		normalize(join(dirname(file), path ?? '')).replaceAll('\\', '/'),
	);

const roomOf = (path: string) => path.split('/', 1)[0] ?? '';

describe.each(files)('%s', (file) => {
	const room = roomOf(file);

	it('imports nothing of a room above its own, and no node', () => {
		const allowed = ROOMS.slice(0, ROOMS.indexOf(room) + 1);
		const isNode = !file.includes('/');
		const wrong = imports(file).filter((path) => {
			if (isNode) return !path.includes('/');
			// The panel shows prices, limits and the names of files.
			if (room === 'fields') return !['fields', 'service', 'shared'].includes(roomOf(path));
			return !allowed.includes(roomOf(path));
		});
		expect(wrong).toEqual([]);
	});

	it(`has at most ${MAX_LINES} lines`, () => {
		const lines = readFileSync(join(HOUSE, file), 'utf8').split('\n').length - 1;
		expect(lines).toBeLessThanOrEqual(MAX_LINES);
	});
});

test('every folder is a room with a place in the order', () => {
	const folders = new Set(files.filter((file) => file.includes('/')).map(roomOf));
	expect([...folders].sort()).toEqual(['fields', ...ROOMS].sort());
});

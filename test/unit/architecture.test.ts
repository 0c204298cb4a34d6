import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const HOUSE = join(__dirname, '../../nodes/MediaGeneration');

/** What happens to a task, from the ground up: a room imports its own files and those of the rooms before it. */
const ROOMS = [
	'shared',
	'service',
	'report',
	'callback',
	'suspend',
	'plan',
	'create',
	'wait',
	'run',
];

/** What the rest of the package may use of the room: all else of it may change without a look elsewhere. */
const DOORS_OF_SUSPEND: Record<string, string[] | 'all'> = {
	'suspend/suspendRun': 'all',
	'suspend/checkExecution': 'all',
	'suspend/resumeWebhook': 'all',
	'suspend/missingCallbacks': ['ExpectedCallbacks'],
	// The operations that no panel offers.
	'suspend/checkWorkflow': ['CHECK_OPERATIONS'],
};

const MAX_LINES = 250;

const files = readdirSync(HOUSE, { recursive: true, encoding: 'utf8' })
	.filter((path) => path.endsWith('.ts'))
	.map((path) => path.replaceAll('\\', '/'));

const imports = (file: string) =>
	[...readFileSync(join(HOUSE, file), 'utf8').matchAll(/from '(\.\.?\/[^']+)'/g)].map(([, path]) =>
		normalize(join(dirname(file), path ?? '')).replaceAll('\\', '/'),
	);

/** What a file imports by name, with the module that it comes from. */
const namedImports = (file: string) =>
	[
		...readFileSync(join(HOUSE, file), 'utf8').matchAll(
			/import (?:type )?(\{[^}]*\}|\* as \w+|\w+) from '(\.\.?\/[^']+)'/g,
		),
	].map(([, names = '', path = '']) => ({
		names: names.startsWith('{')
			? names
					.replace(/[{}\s]/g, ' ')
					.split(',')
					.map((name) => name.trim().replace(/^type /, ''))
					.filter(Boolean)
			: [names],
		path: normalize(join(dirname(file), path)).replaceAll('\\', '/'),
	}));

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

test('every import is one that these tests see', () => {
	for (const file of files) expect(namedImports(file)).toHaveLength(imports(file).length);
});

describe('the room of suspended runs', () => {
	const inside = (path: string) => roomOf(path) === 'suspend';
	const uses = files
		.filter((file) => !inside(file))
		.flatMap((file) => namedImports(file).map((used) => ({ file, ...used })))
		.filter(({ path }) => inside(path));

	it('is entered by its doors alone', () => {
		const wrong = uses.filter(({ path, names }) => {
			const door = DOORS_OF_SUSPEND[path];
			return door !== 'all' && !names.every((name) => door?.includes(name));
		});
		expect(wrong).toEqual([]);
	});

	it('has no door that nobody uses', () => {
		const used = new Set(uses.map(({ path }) => path));
		expect(Object.keys(DOORS_OF_SUSPEND).filter((door) => !used.has(door))).toEqual([]);
	});
});

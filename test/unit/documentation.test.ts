import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runInNewContext } from 'node:vm';
import type { IDataObject, INode, INodeProperties } from 'n8n-workflow';
import ts from 'typescript';
import { parse } from 'yaml';

import { MediaGenerationApi } from '../../credentials/MediaGenerationApi.credentials';
import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
import { OWN_NAMES } from '../../nodes/MediaGeneration/report/outputItems';
import { failedTask, NOT_KNOWN, timedOut } from '../../nodes/MediaGeneration/report/taskErrors';
import { taskJson } from '../../nodes/MediaGeneration/report/taskItems';
import { parseTaskRecord } from '../../nodes/MediaGeneration/service/taskRecord';
import { ItemError } from '../../nodes/MediaGeneration/shared/itemError';
import { filesIn, parameters, read, ROOT, sourceFiles, textOf, visitSource } from './repository';

const pages = [
	...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
	...filesIn('docs', '.md'),
	...filesIn('scripts', '.md'),
	// A run of the mutants has a copy of the repository there.
	...filesIn('test', '.md').filter((path) => !path.startsWith('test/artefacts/')),
];

test('each page of docs/ is reached from the README', () => {
	const readme = read('README.md');
	expect(filesIn('docs', '.md').filter((page) => !readme.includes(`](${page}`))).toEqual([]);
});

/** The page without what stands in blocks of code. */
const prose = (page: string) => read(page).replace(/^ *```.*?^ *```/gms, '');

/** The headings of a page, as its links name them. */
const headingsOf = (page: string) =>
	[...prose(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
		heading
			.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
			.toLowerCase()
			.replace(/[^\p{L}\p{N} _-]/gu, '')
			.replaceAll(' ', '-'),
	);

it.each([...pages, ...filesIn('.github', '.md')])(
	'the links of %s lead to what there is',
	(page) => {
		const links = [...prose(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
		const broken = links.filter((link) => {
			if (link.startsWith('https:') || link.startsWith('mailto:')) return false;
			const [path = '', fragment] = decodeURI(link).split('#');
			const target = path === '' ? page : join(dirname(page), path);
			if (!existsSync(join(ROOT, target))) return true;
			const isHere = fragment === undefined || !target.endsWith('.md');
			return !isHere && !headingsOf(target).includes(fragment ?? '');
		});
		expect(broken).toEqual([]);
	},
);

test('panel, pages, messages and examples have one word for Wait for Task', () => {
	const all = [...pages, ...sourceFiles, ...filesIn('examples', '.json')];
	const others = /\bTask(?::| →|\*\* →) (?:\*\*)?(?:Wait|Get|Create)\b/;
	expect(all.filter((path) => others.test(read(path)))).toEqual([]);
	expect(all.filter((path) => read(path).includes('Wait for Task')).length).toBeGreaterThan(10);
});

it.each(pages)('%s names only commands that there are', (page) => {
	const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
	const commands = [...read(page).matchAll(/\bnpm run ([a-z0-9:]+)/g)].map(([, name = '']) => name);
	expect(commands.filter((name) => !(name in scripts))).toEqual([]);
});

const folders = ['.', 'docs', 'examples', '.github', '.github/ISSUE_TEMPLATE', '.github/workflows'];
const shipped = folders
	.flatMap((folder) => readdirSync(join(ROOT, folder)).map((name) => join(folder, name)))
	.filter((path) => /\.(md|yml|json)$/.test(path) && !path.startsWith('package'));

test.each(shipped)('%s names no home of its own and no mailbox', (page) => {
	const text = read(page);
	expect(text.match(/github\.com\/n8n-nodes-[^\s)]*/g) ?? []).toEqual([]);
	const mailboxes = text.match(/[\w.+-]+@[a-z][\w-]*\.[a-z]{2,}\b/gi) ?? [];
	expect(mailboxes.filter((mailbox) => !mailbox.endsWith('.invalid'))).toEqual([]);
});

test('every picture is shown on a page', () => {
	const text = pages.map(read).join('\n');
	const pictures = filesIn('docs', '.png').concat(filesIn('docs', '.svg'));
	expect(pictures.length).toBeGreaterThan(5);
	expect(pictures.filter((path) => !text.includes(path.replace('docs/', '')))).toEqual([]);
});

test('the README has the section that the credential links to', () => {
	const { hash } = new URL(new MediaGenerationApi().documentationUrl);
	expect(read('README.md').toLowerCase()).toContain(`\n## ${hash.slice(1)}\n`);
});

test('the reference names the fields in which nothing of the input goes on', () => {
	const section = read('docs/reference.md').split('\n## Output\n')[1] ?? '';
	const names = Object.values(OWN_NAMES).flat();
	expect(names.filter((name) => !section.includes(`\`${name}\``))).toEqual([]);
});

test('the reference names every parameter and option', () => {
	const text = read('docs/reference.md');
	// The choice of the resource is the table that a parameter stands in; a collection has its options.
	const labels = parameters
		.filter(({ type, name }) => !/notice|collection|hidden|resource$|operation/.test(type + name))
		.map(({ displayName }) => displayName);
	expect(labels.filter((label) => !text.includes(`**${label}**`))).toEqual([]);
});

test('the reference names every operation', () => {
	const text = read('docs/reference.md');
	const operations = parameters
		.filter(({ name }) => name === 'operation')
		.flatMap(({ options = [] }) => options.map(({ name }) => name));
	expect(operations.filter((name) => !text.includes(`${name}**`))).toEqual([]);
});

test('the reference has the default of every number, switch and text among the options of a task', () => {
	const rows = [...read('docs/reference.md').matchAll(/^- \*\*(.+?)\*\* \((\S+?)[,;]?[ )]/gm)];
	// The options of a task come first; the credits have one of the same name.
	const defaults = new Map(rows.reverse().map(([, label = '', cell]) => [label, cell]));
	const [{ options = [] } = {}] = new MediaGeneration().description.properties.filter(
		({ name }) => name === 'options',
	);
	const told = (options as INodeProperties[])
		.filter(({ type }) => /^(number|boolean|string|json)$/.test(type))
		.map(({ displayName, type, default: value }) => {
			// Left out, a switch is off, whatever it is when it is added in the panel.
			if (type === 'boolean') return [displayName, 'off'];
			if (type === 'number') return [displayName, String(value)];
			return [displayName, value === '' ? 'empty' : `\`${String(value)}\``];
		});
	expect(told.length).toBeGreaterThan(10);
	expect(told.map(([label = '']) => [label, defaults.get(label)])).toEqual(told);
});

/** What the pages say in numbers, and what decides it in the code. */
const TOLD: Record<string, ReadonlyArray<readonly [said: string, line: string]>> = {
	'docs/reference.md': [
		['to an order 120 s', 'CREATE_TIMEOUT_MS = 120_000'],
		['10 s more for each MB', 'LEAST_BYTES_PER_MS = 100'],
		['to a read 30 s', 'READ_TIMEOUT_MS = 30_000'],
		['at most 250 orders a second', 'REQUEST_GAP_MS = 4'],
		['A download: 2 GiB', 'MAX_DOWNLOAD_BYTES = 2 * 1024 ** 3'],
		['60 s until the host answers', 'HOST_TIMEOUT_MS = 60_000'],
		['at least 64 KiB a minute', 'LEAST_BYTES_A_MINUTE = 64 * 1024'],
		['for ten minutes if the run', 'HELD_DOWNLOAD_MS = 10 * MINUTE_MS'],
		['37 MiB for one item', 'MOST_CHARACTERS = 50 * 1024 ** 2'],
		['Answers of the service: 32 MiB', 'MAX_BYTES = 32 * 1024 ** 2'],
		['Callbacks: 1 MiB', 'MAX_BODY_BYTES = 1024 * 1024'],
		['the trigger answers within 10 s', 'ANSWER_LIMIT_MS = 8_000'],
		['at most 500 characters', 'MAX_REFERENCE = 500'],
		['(up to 5)', "retryFailed: { label: 'Retry Failed Tasks', max: 5"],
		['after 5 seconds, then 10, 20', 'FIRST_PAUSE_MS = 5_000'],
		['(0 = a day', 'DAY_SECONDS = 86_400'],
		['ten minutes for most runs', 'HELD_SECONDS = 600'],
	],
	'docs/modes.md': [
		['about once a minute', 'LEAST_SLEEP_MS = 60_000'],
		['a quarter of the time waited', 'PART_OF_TIME_WAITED = 4'],
		['about every quarter of an hour', 'LONGEST_SLEEP_MS = 15 * 60_000'],
		['the node ends ten seconds before', 'LAST_MS = 10_000'],
		['it waits 50 seconds', 'MCP_SECONDS = 50'],
		['a result for a quarter of an hour', 'FINAL_AFTER_MS = 15 * 60_000'],
		['larger than 1 MiB', 'MAX_BODY_BYTES = 1024 * 1024'],
	],
	'docs/money.md': [
		['ends the batch after five seconds', 'NO_SERVICE_PATIENCE_MS = 5_000'],
		['or five other refusals in a row', 'MOST_ALIKE = 5'],
		['three answers 403 or 404', 'MOST_ALIKE_OF_KEY = 3'],
		['up to five minutes', 'LONGEST_DISTURBANCE_MS = 5 * 60_000'],
		['at least the next ten rows', 'LEAST_WINDOW = 10'],
	],
	'docs/service.md': [
		['after five minutes of answers with 404', 'DENIED_MS = 5 * MINUTE_MS'],
		['20 seconds more', 'LINKLESS_MS = 20_000'],
	],
	'docs/admin.md': [['within 90 seconds', 'LATER_TURN_MS = 55_000']],
	'docs/examples.md': [
		['0.08 USD an image', '{ id: IMAGE_MODEL, priceUsd: 0.08'],
		['0.1025 USD a second', '{ id: VIDEO_MODEL, priceUsd: 0.1025'],
	],
};

test.each(Object.entries(TOLD))('the numbers in %s are those of the code', (page, told) => {
	const [text, code] = [read(page), sourceFiles.map(read).join('\n')];
	const wrong = told.filter(([said, line]) => !text.includes(said) || !code.includes(line));
	expect(wrong).toEqual([]);
});

test('an example costs on its page what it costs by the note on its canvas', () => {
	const told = [...read('docs/examples.md').matchAll(/^\[(\S+)\]\(\S+\) \((\d\.\d+ USD)/gm)];
	expect(told.length).toBeGreaterThan(10);
	const wrong = told.filter(([, file, price = '?']) => !read(`examples/${file}`).includes(price));
	expect(wrong.map(([line]) => line)).toEqual([]);
});

/** The messages that a page explains, each at the beginning of a line. */
const explainedOn = (page: string) =>
	[...read(page).matchAll(/^- `([^`]+)`: /gm)].map(([, message = '']) => message);

describe.each(['docs/messages.md', 'docs/installation.md'])('the messages in %s', (page) => {
	const sources = sourceFiles.map(read).join('\n');

	it('are ones that the nodes say', () => {
		const messages = explainedOn(page);
		expect(messages.length).toBeGreaterThan(4);
		const invented = messages.filter((message) =>
			// What differs from case to case stands in the documentation as an example or as "…".
			message
				.split(/…|\d[\d.]*/)
				.map((part) => part.replace(/^\P{L}+|\P{L}+$/gu, ''))
				.some((part) => part.length > 8 && !sources.includes(part)),
		);
		expect(invented).toEqual([]);
	});
});

describe('the messages of the nodes', () => {
	function textsOf(node: ts.Node): string[] {
		if (ts.isConditionalExpression(node)) {
			return [...textsOf(node.whenTrue), ...textsOf(node.whenFalse)];
		}
		return [textOf(node) ?? []].flat();
	}

	interface Message {
		text: string;
		/** Whether a description says what to do. */
		isTold: boolean;
	}

	/** The texts that begin an error, wherever the code makes one. */
	function messagesIn(file: string): Message[] {
		const found: Message[] = [];
		visitSource(file, (node) => {
			const { text: name = '' } = ((node as ts.NewExpression).expression ?? {}) as ts.Identifier;
			const isError = ts.isNewExpression(node) && /^(Item|User|Service)Error$/.test(name);
			if (isError) {
				// The kind of an error comes first.
				const isSecond = name === 'ServiceError';
				const argument = node.arguments?.[isSecond ? 1 : 0];
				const more = node.arguments?.[isSecond ? 2 : 1];
				// A message with a description says itself what to do.
				const isTold = more !== undefined && /\bdescription\b/.test(more.getText());
				if (argument) found.push(...textsOf(argument).map((text) => ({ text, isTold })));
			}
		});
		return found;
	}

	/** Messages of which only others are made, or that nobody is shown. */
	const INSIDE = ['The result is too large'];

	it('are explained on the page, if they have no description', () => {
		const explained = explainedOn('docs/messages.md').map((message) => {
			const parts = message.replace(/[:.]? ?…$/, '').split(/…|\d[\d.]*/);
			return new RegExp(`^${parts.map((part) => part.replace(/\W/g, '\\$&')).join('.+')}`);
		});
		const messages = sourceFiles.flatMap(messagesIn).filter(
			// Only the end of these stands in the code, or nothing but a reason of the service.
			({ text }) => !text.startsWith('…') && !INSIDE.includes(text),
		);
		expect(messages.length).toBeGreaterThan(50);
		const unexplained = messages.filter(({ text, isTold }) => {
			const example = text.replaceAll('…', '7');
			return !isTold && !explained.some((pattern) => pattern.test(example));
		});
		expect(unexplained).toEqual([]);
	});
});

describe("the filters of the how-to page and of the example 'Google Sheets'", () => {
	const evaluate =
		(code = '') =>
		(json: IDataObject) =>
			runInNewContext(code, { $json: json }) as boolean | string;
	const inBraces = (text: unknown) => /\{\{ (.*) \}\}/.exec(String(text))?.[1];
	const [toOrderAgain] = [
		...read('docs/how-to.md').matchAll(/^ *```\n *\{\{ (.*) \}\}\n *```$/gm),
	].map(([, code]) => evaluate(code));

	const { nodes } = JSON.parse(read('examples/google-sheets.json')) as { nodes: INode[] };
	const parameters = (name: string) =>
		nodes.find((node) => node.name === name)?.parameters as never;
	const { columns } = parameters('Write results') as { columns: { value: { status: string } } };
	const statusOf = evaluate(inBraces(columns.value.status));
	const filter = parameters('Not ordered yet') as {
		conditions: { conditions: Array<{ leftValue: string }> };
	};
	const newRows = evaluate(inBraces(filter.conditions.conditions[0]?.leftValue));

	const task = (state: string) =>
		parseTaskRecord('1', { taskId: '1', state, resultUrls: ['https://a.b/c'] });
	const pending = task('PENDING');
	const failed = task('FAILURE');
	const leaves = (error: ItemError) =>
		error.toItem({ onError: 'continueRegularOutput' } as INode).json;
	const out = {
		succeeded: taskJson(task('SUCCESS')),
		failed: failed.state === 'FAILURE' ? leaves(failedTask(failed, {})) : {},
		late: leaves(timedOut(1000, { last: pending }, taskJson(pending))),
		lost: leaves(new ItemError('The result is empty', { task: taskJson(task('SUCCESS')) })),
		refused: leaves(new ItemError('The service did not accept the request (HTTP 400)')),
		doubtful: leaves(new ItemError(`${NOT_KNOWN}. The connection broke`)),
	};

	it('finds the items that certainly have no task, or a task that failed', () => {
		const found = Object.entries(out).filter(([, json]) => toOrderAgain?.(json) === true);
		expect(found.map(([name]) => name)).toEqual(['failed', 'refused']);
	});

	it('writes a status that says what may be ordered again', () => {
		const statuses = Object.entries(out).map(([name, json]) => [name, statusOf(json)]);
		expect(Object.fromEntries(statuses)).toEqual({
			succeeded: 'done',
			failed: 'failed',
			late: 'look',
			lost: 'look',
			refused: 'failed',
			doubtful: 'look',
		});
	});

	it('finds the rows without a status alone, whatever else stands in the row', () => {
		const rows = Object.values(out).map((json) => ({ ...json, status: String(statusOf(json)) }));
		const ordered = rows.map((row) => ({ ...row, status: 'ordered' }));
		for (const row of [...rows, ...ordered]) expect(newRows(row)).toBe(false);
		for (const row of rows) expect(newRows({ ...row, status: '' })).toBe(true);
		expect(newRows({ id: 1 })).toBe(true);
	});
});

test('the interface of the service has every section that the code cites', () => {
	const { 'x-sections': sections } = parse(read('docs/service.openapi.yaml')) as {
		'x-sections': Record<string, string>;
	};
	const cited = sourceFiles.flatMap((file) =>
		[...read(file).matchAll(/@see docs\/service\.openapi\.yaml, sections? ([^:\n]*)/g)].flatMap(
			([, list = '']) => list.match(/\d(\.\d)?/g) ?? [],
		),
	);
	expect(cited.length).toBeGreaterThan(10);
	expect(cited.filter((section) => !(section in sections))).toEqual([]);
});

import { readFileSync } from 'node:fs';

import { MediaGenerationApi } from '../../../credentials/MediaGenerationApi.credentials';
import { readAccount, readService } from '../../../nodes/MediaGeneration/service/readService';
import { SERVICES, SPECIFICATION } from '../../../nodes/MediaGeneration/service/services';
import { caught } from '../support';

const other = (row: unknown) => ({
	service: 'other',
	interface: typeof row === 'string' ? row : JSON.stringify(row),
});

it('a credential without a service has the interface of the specification', () => {
	expect(readService({ baseUrl: 'https://a.test', apiKey: 'k' })).toEqual(SPECIFICATION);
	expect(readService({ service: '' })).toEqual(SPECIFICATION);
});

it('the base URL of the credential takes the place of that of the row', () => {
	const account = { service: 'kie', apiKey: 'k' };
	expect(readAccount(account).baseUrl).toBe('https://api.kie.ai');
	expect(readAccount({ ...account, baseUrl: ' ' }).baseUrl).toBe('https://api.kie.ai');
	expect(readAccount({ ...account, baseUrl: 'https://p.test/x/' }).baseUrl).toBe(
		'https://p.test/x',
	);
	const whole = { ...account, baseUrl: 'https://p.test/api/v1/jobs/createTask' };
	expect(() => readAccount(whole)).toThrow("ends in '/api/v1/jobs/createTask'");
	expect(() => readAccount({ ...account, service: '' })).toThrow("'Base URL'");
});

it.each(Object.keys(SERVICES))('the row of %j can be pasted for another service', (name) => {
	const row = { ...SPECIFICATION, ...SERVICES[name] };
	expect(readService(other(row))).toEqual(row);
});

it('what a pasted row does not say is as in the specification', () => {
	const row = { create: '/tasks', read: '/tasks/{taskId}' };
	expect(readService(other(row))).toEqual({ ...SPECIFICATION, ...row });
});

it.each<[unknown, string]>([
	['', 'is not a JSON object'],
	['hello', 'is not a JSON object'],
	['[]', 'is not a JSON object'],
	[{}, "has no 'create'"],
	[{ create: '/a' }, "has no 'read'"],
	[{ create: 'a', read: '/b' }, "has a 'create' that is not a path that begins with '/'"],
	[{ create: '//evil.test/a', read: '/b' }, "has a 'create'"],
	[{ create: '/a/../../b', read: '/b' }, "has a 'create'"],
	[{ create: '/a', read: '/..' }, "has a 'read'"],
	[{ create: '/a', read: '/b/{key}' }, "has {key} in 'read'"],
	[{ create: '/a', read: '/b/{taskid}' }, "has {taskid} in 'read'"],
	[{ create: '/a', read: '/b', reslts: 'x' }, "has 'reslts', which no row has"],
	[{ create: '/a', read: '/b', body: { a: '{key}' } }, "has a 'body'"],
	[{ create: '/a', read: '/b', body: { '...': 'x' } }, "has a 'body'"],
	[{ create: '/a', read: '/b', headers: { a: 'x' } }, "has a 'headers'"],
	[{ create: '/a', read: '/b', headers: { 'a b': '{key}' } }, "has a 'headers'"],
	[{ create: '/a', read: '/b', headers: { a: '{key}\r\nb: c' } }, "has a 'headers'"],
	[{ create: '/a', read: '/b', id: 'x' }, "has a 'id'"],
	[{ create: '/a', read: '/b', state: '' }, "has a 'state'"],
	[{ create: '/a', read: '/b', results: 7 }, "has a 'results'"],
])('%j is no row: it %s', async (row, what) => {
	const error = await caught(async () => await Promise.resolve(readService(other(row))));
	expect(error.message).toContain(`The 'Interface' of the Media Generation credential ${what}`);
});

it('a service that is not in the list is refused', () => {
	for (const service of ['nobody', 'constructor', 7]) {
		expect(() => readService({ service })).toThrow("The 'Service' of the Media Generation");
	}
});

describe('the page on services', () => {
	const page = readFileSync('docs/services.md', 'utf8');
	const rows = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map(([, row = '']) => row);

	it('has rows that can be pasted', () => {
		expect(rows.map((row) => readService(other(row)).read)).toEqual([
			'/api/generate/{taskId}',
			'/status/{taskId}',
		]);
	});

	const { properties } = new MediaGenerationApi();
	const all = (properties[0]?.options ?? []) as Array<{ name: string; value: string }>;
	const options = all.filter(({ value }) => value !== 'other');

	it("has each service by the panel's name, and the source of its row", () => {
		expect(options.map(({ value }) => value).sort()).toEqual(Object.keys(SERVICES).sort());
		const listed = [...page.matchAll(/^- \*\*(.+)\*\*: `.*\]\((?:https:|service\.md)/gm)];
		expect(listed.map(([, name]) => name).sort()).toEqual(options.map(({ name }) => name).sort());
	});

	it('says which services do not call back', () => {
		const silent = options.filter(
			({ value }) => !JSON.stringify(readService({ service: value })).includes('{callback}'),
		);
		const [, said = ''] = /(\w+, \w+ and \w+) do not call back/.exec(page) ?? [];
		expect(
			said
				.split(/, | and /)
				.map((name) => name.toLowerCase())
				.sort(),
		).toEqual(silent.map(({ value }) => value).sort());
	});
});

import type { IDataObject } from 'n8n-workflow';

import { ServiceClient } from '../../nodes/MediaGeneration/service/client';
import { ServiceError } from '../../nodes/MediaGeneration/service/serviceError';
import { clock, Stopped } from '../../nodes/MediaGeneration/shared/clock';
import { isTerminal } from './n8n/database';
import { useProcessedData } from './processedData';
import {
	fails,
	field,
	hasErrorOutput,
	imageNode,
	item,
	jsonOf,
	keepsGoing,
	MINUTE,
	prompts,
	SECOND,
	stage,
	threeTries,
} from './support';
import { pass, passUntil } from './time';

/** Runs that sleep and are woken, on n8n's own engine and in virtual time. */

useProcessedData();
const on = stage();

/** A prompt whose task takes so many minutes. */
const slow = (prompt: string, minutes = 7) => item(prompt, { latencyMs: minutes * MINUTE });

/** A run of one image for each prompt, after its first turn. */
async function asleep(items: Parameters<typeof prompts>, options: IDataObject = {}, more = {}) {
	const run = await on.start(imageNode(options, more), prompts(...items));
	expect(run.isAsleep).toBe(true);
	return run;
}

const fetched = () =>
	on.service.requests.filter(({ host, status }) => host === 'media' && status === 200);

/** Output without what no two runs share. */
const comparable = (items: unknown) =>
	JSON.parse(
		JSON.stringify(items)
			.replace(/task-[0-9a-f-]{36}/g, 'task')
			.replace(/-[0-9a-f]{4}((?:-\d+)?\.\w+")/g, '-task$1')
			.replace(/"20\d\d-[^"]+"/g, '"time"'),
	) as unknown;

describe('the output is the same, held or woken', () => {
	it.each<[string, IDataObject, object]>([
		['as a rule', {}, {}],
		['with Split Results', { splitResults: true }, {}],
		['without Include Input Fields', { includeInput: false }, {}],
		['with downloads', { downloadResults: true }, {}],
		['with Retry Failed Tasks', { retryFailed: 1 }, {}],
		['with the error output', {}, hasErrorOutput],
		['with Always Output Data', {}, { alwaysOutputData: true }],
		['with Execute Once', {}, { executeOnce: true }],
		['with a reference', { reference: '={{ $json.prompt }}' }, {}],
		['with an error that stops', { ifSomeFail: 'stop' }, {}],
	])('%s', async (_what, options, more) => {
		on.service.configure({ resultCount: 2 });
		const binary = { note: { data: btoa('a note'), mimeType: 'text/plain' } };
		const refused = item('d', { createStatus: 400 });
		const items = prompts(slow('a'), refused, slow('b', 2), fails('c')).map(({ json }) => ({
			json,
			binary,
		}));
		const run = await on.start(imageNode(options, more), items);
		expect(run.isAsleep).toBe(true);
		const woken = await run.end();
		const runs = woken.run.data.resultData.runData.Media;
		expect(runs).toHaveLength(1);
		on.service.clear();
		const held = await on.run(imageNode({ suspendAfter: 60, ...options }, more), items);
		expect(held.run.status).not.toBe('waiting');
		const told = ({ output, errors, error }: typeof held) => [output, errors, error?.message];
		expect(comparable(told(woken))).toEqual(comparable(told(held)));
	});
});

it('says above the output how far the run is', async () => {
	const run = await asleep([slow('a'), fails('b'), 'c'], { ifSomeFail: 'keep' });
	const [hint] = run.ran.hints;
	expect(hint).toContain('3 tasks created, 1 finished, 1 failed');
	expect(hint).toContain('cost so far about 0.16 USD');
});

it('with 0 minutes n8n stores the run before its first create, and wakes it at once', async () => {
	const run = await asleep([slow('a')], { suspendAfter: 0 });
	expect(on.created).toBe(0);
	expect(run.sleepMs).toBe(0);
	const { output } = await run.end();
	expect(field(output, 'state')).toEqual(['SUCCESS']);
	expect(on.created).toBe(1);
});

it('with 0 minutes the time until n8n wakes the run is not taken off the time of a task', async () => {
	const run = await asleep(['a'], { suspendAfter: 0, timeout: 15 });
	await pass(MINUTE);
	const { output } = await run.end();
	expect(field(output, 'state')).toEqual(['SUCCESS']);
});

it('nothing is evaluated into another order: an expression that gives something else next time creates nothing', async () => {
	const additionalInput =
		'={{ JSON.stringify({ seed: Math.random(), simulate: $json.simulate }) }}';
	const run = await asleep([slow('a'), slow('b', 20)], { additionalInput });
	const { output } = await run.end();
	expect(on.created).toBe(2);
	const seeds = output.map(({ json }) => (json.input as IDataObject).seed);
	expect(seeds).toEqual(on.tasks.map(({ record }) => record.input.seed));
});

it.each([
	['of its own', 0, 31],
	['that exists', 1, 41],
])(
	'a read that never ends holds the wait for a task %s no longer than its time, as long again, and seconds',
	async (_whose, exists, atMost) => {
		const reads = jest
			.spyOn(ServiceClient.prototype, 'readTask')
			.mockImplementation(async (_taskId, limitMs = Infinity) => {
				// As long as a read of the service lasts that comes in drops.
				await clock.sleep(Math.min(30 * SECOND, limitMs), undefined);
				throw new ServiceError('noAnswer', 'The answer did not end in time');
			});
		const options = { timeout: 10 };
		const wait = { parameters: { resource: 'task', operation: 'wait', taskId: 'task-1', options } };
		const { error } = exists ? await on.run(wait) : await on.images(['a'], options);
		reads.mockRestore();
		expect(error?.message).toContain('The answer did not end in time');
		expect(on.elapsed / SECOND).toBeGreaterThanOrEqual(20);
		expect(on.elapsed / SECOND).toBeLessThanOrEqual(atMost);
	},
);

it('a stop while a woken run looks at its task ends the run', async () => {
	const run = await asleep([slow('a', 60)]);
	const reads = jest.spyOn(ServiceClient.prototype, 'readTask').mockRejectedValue(new Stopped());
	await passUntil(() => isTerminal(run.row.status));
	reads.mockRestore();
	expect(run.row.sleeps).toBe(1);
});

it('each file is downloaded once, and a media host that is down is asked again in later turns', async () => {
	on.service.configure({ mediaStatus: { status: 503, retryAfter: 1800 } });
	const run = await asleep([slow('a', 6)], { downloadResults: true });
	const asked = () => on.service.requests.filter(({ host }) => host === 'media').length;
	while (asked() === 0) await run.wake();
	while (on.elapsed < 20 * MINUTE) await run.wake();
	expect(asked()).toBe(1);
	while (on.elapsed < 40 * MINUTE) await run.wake();
	expect(run.isAsleep).toBe(true);
	on.service.resetSettings();
	const { output, error } = await run.end();
	expect(error).toBeUndefined();
	expect(output[0]?.binary?.data?.mimeType).toBe('image/png');
	expect(fetched()).toHaveLength(1);
});

it('a credential that is lost while the run sleeps is looked up at each wake', async () => {
	const run = await asleep([slow('a', 6)]);
	const credential = { ...on.credential, apiKey: '' };
	const { test } = run.n8n;
	Object.assign(test, { credential });
	await run.wake();
	await run.wake();
	expect(run.isAsleep).toBe(true);
	Object.assign(test, { credential: on.credential });
	const { output } = await run.end();
	expect(field(output, 'state')).toEqual(['SUCCESS']);
});

it("the workflow's time limit ends the wait before n8n cancels the run: the items leave with their ids", async () => {
	const settings = { executionTimeout: 1200 };
	const run = await on.start(imageNode({}, keepsGoing), prompts(slow('a', 60)), { settings });
	expect(run.isAsleep).toBe(true);
	const { output } = await run.end();
	expect(output).toMatchObject([{ json: { taskId: on.taskIds[0], timedOut: true } }]);
	expect(on.elapsed).toBeLessThan(20 * MINUTE);
	expect(on.elapsed).toBeGreaterThan(18 * MINUTE);
});

it('Retry On Fail in a woken turn pays for nothing twice', async () => {
	const run = await asleep([slow('a'), slow('b', 20)], { timeout: 600 }, threeTries);
	await run.end();
	expect(on.created).toBe(2);
	expect(field(run.ran.output, 'state')[0]).toBe('SUCCESS');
});

it('Retry On Fail comes to its end, although n8n counts its tries anew when it wakes a run', async () => {
	const run = await asleep([slow('a', 300)], { timeout: 600 }, threeTries);
	const { error } = await run.end();
	expect(error?.message).toContain('is not finished');
	expect(on.elapsed).toBeLessThan(60 * MINUTE);
	expect(on.created).toBe(1);
});

describe('a batch that takes several turns', () => {
	const many = (count: number) =>
		Array.from({ length: count }, (_, index) => item(`p${index}`, { latencyMs: 40 * SECOND }));

	it('retried while it sleeps: n8n wakes it all the same, and it creates nothing more', async () => {
		const run = await asleep(many(60), { suspendAfter: 1, maxInFlight: 10 });
		const retried = await run.retry();
		const { error, description } = await run.end();
		expect(error?.message).toContain('A retry of this execution goes on with its tasks');
		expect(description).toContain(on.taskIds[0]);
		const { output } = await retried.end();
		expect(output).toHaveLength(60);
		const orders = on.inputs.map(({ prompt }) => prompt);
		expect(new Set(orders).size).toBe(orders.length);
		// What the woken run was to create is in doubt.
		const doubtful = jsonOf(output).filter(({ error }) => error !== undefined);
		expect(doubtful).toHaveLength(0);
	});

	it('retried with the currently saved workflow: the bare input does not leave', async () => {
		const run = await asleep([slow('a', 30)], {}, { alwaysOutputData: true });
		const retried = await run.retry('saved');
		const { output } = await retried.end();
		expect(on.created).toBe(1);
		for (const json of jsonOf(output)) expect(json).not.toHaveProperty('prompt');
		expect(JSON.stringify(output)).toContain(on.taskIds[0]);
	});
});

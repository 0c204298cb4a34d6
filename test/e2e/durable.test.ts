import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { outputItems, until } from '../n8n/client';
import { shortMinute } from '../n8n/settings';
import { AT_ONCE } from './atOnce';
import {
	call,
	called,
	inALoop,
	inARow,
	itemNodes,
	linked,
	manualTrigger,
	prompts,
	to,
} from './nodes';
import { atTheSameTime, itemsOf, statesOf, succeeded } from './run';
import { openScene, type Order } from './scene';

/**
 * What can happen to a suspended run while it waits, all of it at the same time, on an n8n whose minutes are short. The
 * times of the stories are those of an n8n as it is. The stories of the simulation's model are told by `model.test.ts`.
 */

const MINUTE = 60_000;

/** All stories begin within it. */
const MINUTE_HERE = 10_000;

/** How long a time of a story lasts here. */
const short = (ms: number) => (ms * MINUTE_HERE) / MINUTE;

const silent = (latencyMs: number, more: IDataObject = {}) => ({
	latencyMs: short(latencyMs),
	callbackLost: true,
	...more,
});

const scene = openScene({ env: shortMinute(MINUTE_HERE), clears: false });
const story = atTheSameTime(test, 300);

/** Starts a run that suspends itself at once; its name tells its tasks from those of the others. */
const start = async (name: string, switches: IDataObject[], order: Order = {}) =>
	await scene.startImages(switches, { name, ...order, options: { ...AT_ONCE, ...order.options } });

const image = () => scene.image({ options: AT_ONCE });

story('a run that is stopped has its tasks read no more', async () => {
	const run = await start('Stopped', [silent(600_000)]);
	await (await run.suspended()).stop();
	const before = run.reads;
	await until('the sub-executions to end', 4 * MINUTE, async () => {
		const subs = await run.others();
		return subs.length === 2 && subs.every(({ status }) => status === 'success');
	});
	expect(run.reads).toBe(before);
	expect((await run.now()).status).toBe('canceled');
});

story('a workflow that is renamed, edited and switched off meanwhile', async () => {
	const run = await start('Edited', [silent(75_000)], { after: [scene.collector.node()] });
	await run.suspended();
	const other = inARow(manualTrigger(), itemNodes('Other', [{}]));
	await scene.client.updateWorkflow(run.workflowId, { name: 'Renamed', ...other });
	expect(statesOf(await run.end())).toEqual(['SUCCESS']);
});

story(
	'a credential that cannot be used at the timeout, and can be used a minute later',
	async () => {
		const { client, service } = scene;
		const { url: baseUrl, apiKey } = service;
		const data = { baseUrl, apiKey };
		const own = await client.createCredential('Own', 'mediaGenerationApi', data);
		const node = { credentials: { mediaGenerationApi: { id: own.id, name: own.name } } };
		const run = await start('Unusable', [silent(600_000)], { options: { timeout: 20 }, node });
		await run.suspended();
		await client.updateCredential(own, { ...data, baseUrl: 'not an address' });
		await scene.logged('this check could not be made');
		await sleep(25_000);
		for (const taskId of run.taskIds) service.complete(taskId);
		await client.updateCredential(own, data);
		expect(statesOf(await run.end())).toEqual(['SUCCESS']);
	},
);

const SETTINGS: Record<string, IDataObject> = {
	Private: { callerPolicy: 'none' },
	Unsaved: { saveDataSuccessExecution: 'none', saveDataErrorExecution: 'none' },
};
for (const [name, settings] of Object.entries(SETTINGS)) {
	story(`a workflow with the settings ${JSON.stringify(settings)}`, async () => {
		const after = [scene.collector.node()];
		const run = await start(name, [silent(75_000)], { after, settings });
		await run.suspended();
		await scene.arrived(run.taskIds[0]);
	});
}

/** Publishes a sub-workflow that generates an image for each item, and gives back the node that calls it. */
async function callOf(nodes = [image()], parameters: IDataObject = {}) {
	const child = { name: 'Child', ...inARow(called(), ...nodes) };
	const { id } = await scene.client.createWorkflow(child);
	await scene.client.publish(id);
	return call(id, parameters);
}

story('without any callback, in a sub-workflow: all comes out, in order, linked', async () => {
	const refused = { outcome: 'FAILURE', failureMessage: 'no such colour' };
	const switches = [silent(5_000), silent(2_000, refused), silent(25_000)];
	const run = await scene.start('Nested', prompts('Nested', switches), await callOf(), linked());
	const items = itemsOf(succeeded(await run.end()), 'Linked');
	expect(items.map(({ state }) => state)).toEqual(['SUCCESS', 'FAILURE', 'SUCCESS']);
	expect(items.map((item) => item.linked)).toEqual(['Nested 0', 'Nested 1', 'Nested 2']);
	expect(items[1]?.error).toContain('no such colour');
	// One at the first check, one at the last; and at most one for each check between.
	expect(run.reads).toBeLessThanOrEqual(8);
});

story('twice, one after the other, the first with its files', async () => {
	const options = { additionalInput: '={{ { simulate: { latencyMs: 3000 } } }}' };
	const prompt = '=Twice again {{ $itemIndex }}';
	const again = scene.image({ prompt, options }, { name: 'Again' });
	const run = await start('Twice', [{ latencyMs: 3_000 }, { latencyMs: 6_000 }], {
		options: { downloadResults: true },
		after: [again],
	});
	const execution = await run.end();
	const files = outputItems(execution, 'Media').map(({ binary }) => binary?.data?.mimeType);
	expect(files).toEqual(['image/png', 'image/png']);
	for (const name of ['Media', 'Again']) {
		expect(statesOf(execution, name)).toEqual(['SUCCESS', 'SUCCESS']);
	}
	expect(run.tasks).toHaveLength(4);
});

story('in two branches', async () => {
	const items = prompts('Branches', [{ latencyMs: 4_000 }]);
	const { nodes, connections } = inARow(manualTrigger(), items, image());
	const run = await scene.startWorkflow({
		name: 'Branches',
		nodes: [...nodes, { ...image(), name: 'Other' }],
		connections: { ...connections, Prompts: { main: to('Media', 'Other') } },
	});
	const execution = await run.end();
	for (const name of ['Media', 'Other']) expect(statesOf(execution, name)).toEqual(['SUCCESS']);
	expect(run.tasks).toHaveLength(2);
});

story('in a loop', async () => {
	const items = prompts('Loop', [{ latencyMs: 3_000 }, { latencyMs: 3_000 }]);
	const run = await scene.startWorkflow({ name: 'Loop', ...inALoop(items, image()) });
	const { data } = succeeded(await run.end());
	expect(data.resultData.runData.Media).toHaveLength(2);
	expect(run.tasks).toHaveLength(2);
});

story(
	'in a sub-workflow that is run once for each item, n8n goes on with the first that ends',
	async () => {
		const items = prompts('Each', Array(3).fill(silent(5_000)) as IDataObject[]);
		const each = await callOf([image(), scene.collector.node()], { mode: 'each' });
		const run = await scene.start('Each', items, each);
		expect(itemsOf(await run.end(), 'Call')).toHaveLength(1);
		// Each of them comes to its own end.
		for (const taskId of run.taskIds) await scene.arrived(taskId);
		expect(run.tasks).toHaveLength(3);
	},
);

story(
	'the sub-execution that checks is deleted: the run waits on until it is stopped',
	async () => {
		const run = await start('Unchecked', [silent(600_000)]);
		const [checker] = await (await run.suspended()).others();
		await scene.client.deleteExecution(checker?.id ?? '');
		await sleep(short(2.5 * MINUTE));
		expect((await run.now()).status).toBe('waiting');
		await run.stop();
	},
);

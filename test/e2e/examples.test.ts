import type { IDataObject, INode } from 'n8n-workflow';

import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackUrl';
import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/prices';
import { listExamples, prepare, publishTriggers, readExample } from '../demo/examples';
import { type LanguageModel, startLanguageModel } from '../demo/languageModel';
import {
	describe as describeExecution,
	type Execution,
	outputItems,
	type StoredCredential,
	until,
	type WorkflowDefinition,
} from '../n8n/client';
import type { Need } from '../n8n/differences';
import type { SimulatedTask } from '../service/service';
import { needing } from './needs';
import { deliver, Stage } from './stage';

const TIMEOUT_MS = 60_000;

let stage: Stage;
let model: LanguageModel;
let credentials: StoredCredential[];

beforeAll(async () => {
	stage = await Stage.open({ N8N_DEFAULT_BINARY_DATA_MODE: 'filesystem' });
	model = await startLanguageModel();
	const { client, credential } = stage;
	credentials = [
		{ ...credential, type: 'mediaGenerationApi' },
		await client.createCredential('Language model', 'openAiApi', {
			apiKey: 'none',
			url: model.url,
		}),
	];
}, 900_000);
afterAll(async () => {
	await model?.close();
	await stage?.close();
});
beforeEach(() => stage.service.resetSettings());

/**
 * Imports an example.
 *
 * @param changes parameters of some of its nodes, put over those in the file
 */
async function importExample(name: string, changes: Record<string, IDataObject> = {}) {
	const definition = prepare(readExample(name), credentials);
	for (const [node, parameters] of Object.entries(changes)) change(definition, node, parameters);
	return { ...definition, id: (await stage.client.createWorkflow(definition)).id };
}

function change(definition: WorkflowDefinition, name: string, parameters: IDataObject): void {
	const node = definition.nodes.find((other) => other.name === name);
	if (!node) throw new Error(`There is no node "${name}".`);
	Object.assign(node.parameters, parameters);
}

/** Imports an example, runs it as the editor's button does, and waits for its end. */
async function runExample(name: string, changes: Record<string, IDataObject> = {}) {
	return await succeed(await stage.client.run((await importExample(name, changes)).id));
}

async function succeed(executionId: string): Promise<Execution> {
	const execution = await stage.client.waitForExecution(executionId, TIMEOUT_MS);
	expect(describeExecution(execution)).toBe('success');
	return execution;
}

/** @returns the tasks that were created meanwhile, and what it came to */
async function creating<T>(action: () => Promise<T>): Promise<[SimulatedTask[], T]> {
	const { tasks } = stage.service;
	const before = new Set(tasks.keys());
	const result = await action();
	return [[...tasks.values()].filter(({ taskId }) => !before.has(taskId)), result];
}

const promptsOf = (tasks: SimulatedTask[]) => tasks.map(({ record }) => record.input.prompt).sort();
const jsonOf = (execution: Execution, node: string, output = 0) =>
	outputItems(execution, node, output).map(({ json }) => json);

/** The texts that an example's own list holds. */
function listed(
	{ nodes }: WorkflowDefinition,
	node: string,
	list: string,
	field: string,
): string[] {
	const { parameters } = nodes.find(({ name }) => name === node) as INode;
	const json = JSON.parse(String(parameters.jsonOutput)) as Record<string, IDataObject[]>;
	return (json[list] ?? []).map((entry) => String(entry[field])).sort();
}

/** What an example needs of n8n. */
const needOf = (name: string): Need => {
	if (/^(two-lanes|records)/.test(name)) return 'dataTables';
	return name === 'overnight-batch' ? 'suspending' : 'any';
};

describe.each(listExamples())('%s', (name) => {
	needing(needOf(name), name).test(
		'can be imported by hand: n8n knows every node, and nothing points at what is not in the file',
		async () => {
			const { nodes, connections } = readExample(name);
			const known = (await stage.client.nodeTypes()).flatMap(({ name: type, version }) =>
				[version].flat().map((each) => `${type} ${each}`),
			);
			expect(known).toEqual(
				expect.arrayContaining(nodes.map(({ type, typeVersion }) => `${type} ${typeVersion}`)),
			);
			expect(nodes.filter((node) => node.credentials ?? node.webhookId)).toEqual([]);
			const names = nodes.map((node) => node.name);
			const targets = Object.values(connections).flatMap((outputs) =>
				Object.values(outputs).flat(2),
			);
			for (const target of targets) expect(names).toContain(target?.node);
		},
	);

	test('says on the canvas what to set and what it costs', () => {
		const notes = readExample(name)
			.nodes.filter(({ type }) => type === 'n8n-nodes-base.stickyNote')
			.map(({ parameters }) => String(parameters.content))
			.join('\n');
		expect(notes).toMatch(/\*\*Set:\*\* .*credential/);
		expect(notes).toContain('**Costs:**');
		expect(notes).toContain('**Go on from here:**');
	});
});

needing('suspending', 'overnight-batch').test(
	'overnight-batch: a few at a time, each time suspended; a restart of n8n costs nothing',
	async () => {
		const { client, service } = stage;
		service.configure({ latencyMs: 3_600_000 });
		const { id } = await importExample('overnight-batch', { 'Loop Over Items': { batchSize: 2 } });
		const execution = await client.run(id);
		const prompts = listed(readExample('overnight-batch'), 'Prompts', 'prompts', 'prompt');
		const before = service.tasks.size;
		const [tasks] = await creating(async () => {
			for (let ordered = 2; ordered <= prompts.length; ordered += 2) {
				await until(`${ordered} orders`, 2 * TIMEOUT_MS, async () =>
					Promise.resolve(service.tasks.size === before + ordered),
				);
				await client.waitForSuspension(execution, TIMEOUT_MS);
				if (ordered === 4) await stage.killAndRestart();
				const [one, other] = [...service.tasks.keys()].slice(-2);
				service.complete(one ?? '', ordered === 2 ? 'FAILURE' : 'SUCCESS');
				service.complete(other ?? '');
			}
		});
		const night = await client.waitForExecution(execution, 2 * TIMEOUT_MS);
		expect(describeExecution(night)).toBe('success');
		expect(promptsOf(tasks)).toEqual(prompts);
		const [failed, ...finished] = tasks.map(({ taskId }) => taskId);
		expect(jsonOf(night, 'Videos').map(({ taskId }) => taskId)).toEqual(finished);
		expect(jsonOf(night, 'To look into')).toEqual([
			expect.objectContaining({ taskId: failed, error: expect.any(String) }),
		]);
	},
	10 * TIMEOUT_MS,
);

test('batch-of-prompts: a picture for each prompt, and the one that fails is sorted out', async () => {
	const [tasks, execution] = await creating(async () => await runExample('batch-of-prompts'));
	const prompts = listed(readExample('batch-of-prompts'), 'Prompts', 'prompts', 'prompt');
	expect(promptsOf(tasks)).toEqual(prompts);
	const pictures = jsonOf(execution, 'Pictures');
	expect(pictures.map(({ resultUrls }) => resultUrls)).toEqual(
		Array(prompts.length - 1).fill([expect.stringMatching(/^http.*png$/)]),
	);
	expect(jsonOf(execution, 'To look into')).toEqual([
		expect.objectContaining({ error: expect.stringContaining('content filter') }),
	]);
});

describe('approve-before-you-pay', () => {
	/** Runs it until it asks; answers as its form does. */
	async function order(decision: string): Promise<[SimulatedTask[], Execution]> {
		const { client, webhookUrl } = stage;
		const { id } = await importExample('approve-before-you-pay');
		const executionId = await client.run(id);
		await client.waitForSuspension(executionId, TIMEOUT_MS);
		const asked = await client.getExecution(executionId);
		const [{ count, costUsd, subject, text, formUrl } = {}] = jsonOf(asked, 'Write the message');
		expect([count, costUsd]).toEqual([3, 0.24]);
		expect(subject).toBe('3 pictures for 0.24 USD: shall they be ordered?');
		expect(text).toContain('A red fox in fresh snow');
		const { pathname, search } = new URL(String(formUrl));
		const address = new URL(pathname + search, webhookUrl);
		const page = await (await fetch(address)).text();
		expect(page).toContain('3 pictures for 0.24 USD');
		return await creating(async () => {
			const form = new FormData();
			form.set('field-0', decision);
			expect((await fetch(address, { method: 'POST', body: form })).status).toBe(200);
			return await succeed(executionId);
		});
	}

	test('creates nothing before the answer, and after it what was shown', async () => {
		const before = stage.service.tasks.size;
		const [tasks, execution] = await order('Order them');
		expect(stage.service.tasks.size).toBe(before + 3);
		const prompts = listed(readExample('approve-before-you-pay'), 'Prompts', 'prompts', 'prompt');
		expect(promptsOf(tasks)).toEqual(prompts);
		expect(jsonOf(execution, 'Dry run').every(({ dryRun }) => dryRun === true)).toBe(true);
		expect(jsonOf(execution, 'Pictures').map(({ state }) => state)).toEqual(
			Array(3).fill('SUCCESS'),
		);
	});

	test('creates nothing where the answer is no', async () => {
		const [tasks, execution] = await order('Order nothing');
		expect(tasks).toEqual([]);
		expect(jsonOf(execution, 'Not ordered')).toHaveLength(1);
	});
});

test('image-to-video: each scene becomes a picture, and the picture a video file', async () => {
	const [tasks, execution] = await creating(async () => await runExample('image-to-video'));
	const example = readExample('image-to-video');
	const texts = ['scene', 'motion'].flatMap((text) => listed(example, 'Scenes', 'scenes', text));
	expect(promptsOf(tasks)).toEqual(texts.sort());
	const pictures = jsonOf(execution, 'Generate picture').map(({ resultUrls }) => resultUrls);
	const videos = outputItems(execution, 'Videos');
	expect(videos.map(({ json }) => [(json.input as IDataObject).image_url])).toEqual(pictures);
	expect(videos.map(({ binary }) => binary?.data?.mimeType)).toEqual(['video/mp4', 'video/mp4']);
});

needing('dataTables', 'two-lanes-with-trigger').test(
	'two-lanes-with-trigger: each picture is written to its own row once, however often the service calls',
	async () => {
		const { client, service } = stage;
		service.configure({ callbackCopies: 3 });
		const workflow = await importExample('two-lanes-with-trigger');
		await publishTriggers(client, workflow.id, workflow);
		const [tasks] = await creating(async () => {
			await succeed(await client.run(workflow.id));
			await client.waitForExecutions(workflow.id, 4, TIMEOUT_MS);
			service.configure({ outcome: 'FAILURE' });
			await succeed(await client.run(workflow.id));
			await client.waitForExecutions(workflow.id, 8, TIMEOUT_MS);
		});
		const prompts = listed(workflow, 'Prompts', 'prompts', 'prompt');
		expect(promptsOf(tasks)).toEqual([...prompts, ...prompts].sort());
		const rows = await rowsOf('media_generation_pictures');
		expect(rows.map(({ prompt }) => prompt).sort()).toEqual(promptsOf(tasks));
		for (const { record, taskId } of tasks) {
			const own = rows.filter(({ picture, remark }) =>
				`${String(picture)} ${String(remark)}`.includes(taskId),
			);
			const isGood = record.state === 'SUCCESS';
			expect(own).toEqual([
				expect.objectContaining({
					prompt: record.input.prompt,
					picture: isGood ? expect.stringMatching(/^http.*png$/) : null,
					credits: isGood ? 8 : null,
					remark: isGood ? null : `Task ${taskId} failed: order it again`,
				}),
			]);
		}
		await client.unpublish(workflow.id);
	},
);

/** The address of a data table. */
async function tablePath(name: string): Promise<string> {
	const { id } = await stage.client.get<{ id: string }>('/rest/projects/personal');
	const tables = `/rest/projects/${id}/data-tables`;
	const { data } = await stage.client.get<{ data: Array<{ id: string; name: string }> }>(tables);
	const table = data.find((each) => each.name === name);
	if (!table) throw new Error('There is no table.');
	return `${tables}/${table.id}`;
}

async function rowsOf(table: string): Promise<IDataObject[]> {
	const path = await tablePath(table);
	return (await stage.client.get<{ data: IDataObject[] }>(`${path}/rows`)).data;
}

/** What a node put out in all executions of a workflow. */
async function everyItem(workflowId: string, node: string): Promise<IDataObject[]> {
	const { client } = stage;
	const executions = await client.listExecutions({ workflowId });
	const items = await Promise.all(
		executions.map(async ({ id }) => jsonOf(await client.getExecution(id), node)),
	);
	return items.flat();
}

needing('dataTables', 'records-in-a-data-table').describe('records-in-a-data-table', () => {
	const NAME = 'records-in-a-data-table';
	/** Minutes are too long for a test. */
	const CHANGES = { 'Wait a moment': { amount: 3 } };
	let workflow: Awaited<ReturnType<typeof importExample>>;
	let address: string;

	beforeAll(async () => {
		workflow = await importExample(NAME, CHANGES);
		await publishTriggers(stage.client, workflow.id, workflow);
		const trigger = workflow.nodes.find(({ name }) => name === 'Media Generation Trigger') as INode;
		const url = stage.webhookUrl + stage.client.webhookPath(trigger, 'callback');
		address = callbackAddress(url, stage.service.apiKey);
	}, 60_000);

	const records = async () => await rowsOf('media_generation_tasks');

	const statesOf = async (tasks: SimulatedTask[]) => {
		const rows = await records();
		return tasks.map(({ taskId }) => rows.filter((row) => row.taskId === taskId).map(stateOf));
	};
	const stateOf = ({ state }: IDataObject) => state;

	/** The first look is a minute after the order, and n8n's clock ticks once a minute. */
	const FALLBACK_MS = 180_000;

	const untilStates = async (tasks: SimulatedTask[], wanted: string, timeoutMs = TIMEOUT_MS) =>
		await until(`${tasks.length} records to be ${wanted}`, timeoutMs, async () =>
			(await statesOf(tasks)).every((states) => states.join() === wanted),
		);

	const order = async () =>
		(await creating(async () => await succeed(await stage.client.run(workflow.id))))[0];

	const lookedUp = async (taskId: string, node: string) =>
		(await everyItem(workflow.id, node)).filter((item) => item.taskId === taskId);

	test('an order is put on record, and its callback adds the result once', async () => {
		stage.service.configure({ callbackCopies: 3 });
		const tasks = await order();
		expect(promptsOf(tasks)).toEqual(listed(workflow, 'Prompts', 'prompts', 'prompt'));
		await untilStates(tasks, 'SUCCESS');
		for (const row of await records()) {
			expect(row).toMatchObject({
				resultUrls: expect.stringMatching(/^http.*png$/),
				creditsConsumed: 8,
				finishedAt: expect.any(String),
			});
			expect(JSON.parse(String(row.record))).toMatchObject({ input: { prompt: row.prompt } });
		}
		await stage.client.waitForExecutions(workflow.id, 1 + tasks.length, TIMEOUT_MS);
		const results = await everyItem(workflow.id, 'Results');
		expect(results.map(({ taskId }) => taskId).sort()).toEqual(
			tasks.map(({ taskId }) => taskId).sort(),
		);
	});

	test('a callback that never came is made up for by itself', async () => {
		stage.service.configure({ callbackLost: true, latencyMs: 0 });
		const tasks = await order();
		expect(await statesOf(tasks)).toEqual([['PENDING'], ['PENDING'], ['PENDING']]);
		await untilStates(tasks, 'SUCCESS', FALLBACK_MS);
		for (const { taskId } of tasks) {
			await until(
				`the result of ${taskId}`,
				TIMEOUT_MS,
				async () => (await lookedUp(taskId, 'Results')).length === 1,
			);
		}
	}, 240_000);

	test('a task that is not on record is left alone, and one whose record comes late is not', async () => {
		const { service, client } = stage;
		const [stranger, late] = [{ prompt: 'Somebody else' }, { prompt: 'A quick task' }].map(
			(input) => {
				const task = service.createTask(IMAGE_MODEL, input);
				service.complete(task.taskId);
				return task;
			},
		) as [SimulatedTask, SimulatedTask];
		for (const { taskId } of [stranger, late]) {
			expect((await deliver(address, { taskId })).status).toBe(200);
		}
		await putOnRecord(late);
		await untilStates([late], 'SUCCESS');
		await until('the stranger to be given up', TIMEOUT_MS, async () =>
			(await client.listExecutions({ workflowId: workflow.id })).every(
				({ status }) => status === 'success',
			),
		);
		expect(await statesOf([stranger])).toEqual([[]]);
		expect(await everyItem(workflow.id, 'Not ours')).toHaveLength(1);
	});

	async function putOnRecord({ taskId, record }: SimulatedTask): Promise<void> {
		const row = { taskId, prompt: record.input.prompt, state: 'PENDING' };
		await stage.client.send('POST', `${await tablePath('media_generation_tasks')}/insert`, {
			data: [row],
		});
	}
});

needing('agents', 'rewrite-refused-prompts').test(
	'rewrite-refused-prompts: what the model held back is rewritten and ordered once more, and never again',
	async () => {
		const prompts = listed(readExample('rewrite-refused-prompts'), 'Prompts', 'prompts', 'prompt');
		const refused = prompts.find((prompt) => prompt.startsWith('A dragon')) ?? '';
		const [tasks, execution] = await creating(
			async () => await runExample('rewrite-refused-prompts'),
		);
		expect(promptsOf(tasks)).toEqual([...prompts, `${refused}, for children`].sort());
		const pictures = [
			...jsonOf(execution, 'Generate images'),
			...jsonOf(execution, 'Order once more'),
		];
		expect(pictures.map(({ state }) => state)).toEqual(prompts.map(() => 'SUCCESS'));
		expect(jsonOf(execution, 'To look into')).toEqual([]);

		stage.service.configure({ outcome: 'FAILURE' });
		const [failing, end] = await creating(async () => await runExample('rewrite-refused-prompts'));
		expect(failing).toHaveLength(2 * prompts.length);
		expect(jsonOf(end, 'Pictures')).toEqual([]);
		expect(jsonOf(end, 'To look into')).toHaveLength(prompts.length);
	},
);

test('rewrite-refused-prompts: an order whose answer was lost is not sent again', async () => {
	stage.service.configure({ createStatus: 500 });
	const [tasks, execution] = await creating(
		async () => await runExample('rewrite-refused-prompts'),
	);
	expect(tasks).toEqual([]);
	const errors = jsonOf(execution, 'To look into').map(({ error }) => error);
	expect(errors).toHaveLength(3);
	expect(outputItems(execution, 'Rewrite the prompt')).toEqual([]);
	for (const error of errors)
		expect(error).toMatch(/^It is not known whether the task was created/);
});

test('credits-guard: a warning below the minimum, and where the balance cannot be read', async () => {
	const { service } = stage;
	service.configure({ creditsShape: { balance: 500 } });
	const enough = await runExample('credits-guard');
	expect(jsonOf(enough, 'Enough')).toEqual([expect.objectContaining({ balance: 500 })]);
	expect(jsonOf(enough, 'Send the warning')).toEqual([]);

	service.configure({ creditsShape: { balance: 499 } });
	const low = await runExample('credits-guard');
	expect(jsonOf(low, 'Enough')).toEqual([]);
	expect(jsonOf(low, 'Send the warning')).toEqual([
		{
			subject: expect.stringContaining('running low'),
			text: expect.stringMatching(/499 .*500/),
		},
	]);

	service.configure({ creditsShape: { hello: 'world' } });
	expect(jsonOf(await runExample('credits-guard'), 'Send the warning')).toEqual([
		{
			subject: expect.stringContaining('could not be read'),
			text: expect.stringContaining('balance'),
		},
	]);
});

needing('agents', 'ai-agent-tool').test(
	'ai-agent-tool: the agent makes the picture it is asked for, and reads the credits',
	async () => {
		const { client, service } = stage;
		const { id } = await importExample('ai-agent-tool');
		const say = async (text: string) => await client.chat(id, 'When chat message received', text);

		const [tasks, answer] = await creating(async () => await say('A picture of a red fox, please'));
		expect(promptsOf(tasks)).toEqual(['A picture of a red fox, please']);
		const [address] = tasks[0]?.record.resultUrls ?? [];
		expect(answer).toEqual({ output: `Here it is: ${address}` });

		const [none, credits] = await creating(async () => await say('How many credits are left?'));
		expect(none).toEqual([]);
		expect(credits.output).toContain(String(service.balance));
		const offered = model.requests
			.find(({ tools }) => tools)
			?.tools?.map((tool) => tool.function.name)
			.sort();
		expect(offered).toEqual(['Generate_picture', 'Read_credits']);
	},
);

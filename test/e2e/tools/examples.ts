import type { ICredentialDataDecryptedObject, IDataObject, INode } from 'n8n-workflow';

import { fileStem } from '../../../nodes/MediaGeneration/report/taskItems';
import { callbackAddress } from '../../../nodes/MediaGeneration/callback/callbackAddress';
import { listen } from '../../listen';
import {
	type Execution,
	outputItems,
	type StoredCredential,
	until,
	type WorkflowDefinition,
} from '../../n8n/client';
import {
	listExamples,
	prepare,
	promptsOf as promptsInFile,
	publishTriggers,
	readExample,
} from '../../n8n/examples';
import type { LanguageModel } from '../../n8n/languageModel';
import type { SimulatedTask } from '../../service/service';
import { itemsOf, promptOf, Run, statesOf, succeeded } from '../run';
import type { Scene } from '../scene';

const MINUTE = 60_000;

/** The models of the account, in place of the placeholders that the examples come with. */
const OWN_MODELS = [
	{ id: 'acme/painter-9', priceUsd: 0.08, unit: 'task' },
	{ id: 'acme/video-9', priceUsd: 0.1025, unit: 'second' },
];

class Examples {
	private credentials: StoredCredential[] = [];

	constructor(readonly scene: Scene) {}

	async open(model: string): Promise<void> {
		const { client, stage } = this.scene;
		const access = { apiKey: 'none', url: model };
		this.credentials = [
			await client.createCredential('My account', 'mediaGenerationApi', {
				baseUrl: stage.service.url,
				apiKey: stage.service.apiKey,
				models: { model: OWN_MODELS },
			}),
			await client.createCredential('Language model', 'openAiApi', access),
		];
	}

	/** Adds a credential for the nodes of its type. */
	async addCredential(name: string, type: string, data: ICredentialDataDecryptedObject) {
		this.credentials.push(await this.scene.client.createCredential(name, type, data));
	}

	/**
	 * Imports an example as it is: it begins with the models of the credential.
	 *
	 * @param changes parameters of some of its nodes, put over those in the file
	 */
	async import(name: string, changes: Record<string, IDataObject> = {}) {
		const definition = prepare(readExample(name), this.credentials);
		for (const [node, parameters] of Object.entries(changes)) {
			Object.assign(nodeOf(definition, node).parameters, parameters);
		}
		return { ...definition, id: (await this.scene.client.createWorkflow(definition)).id };
	}

	async start({ id, name }: { id: string; name: string }): Promise<Run> {
		return new Run(this.scene, await this.scene.client.run(id), id, name);
	}

	async run(name: string): Promise<Execution> {
		return succeeded(await (await this.start(await this.import(name))).end());
	}
}

function nodeOf({ nodes }: WorkflowDefinition, name: string): INode {
	const node = nodes.find((other) => other.name === name);
	if (!node) throw new Error(`There is no node "${name}".`);
	return node;
}

const promptsOf = (tasks: SimulatedTask[]) => tasks.map(({ record }) => promptOf(record)).sort();

/** The texts that an example's own list holds: by default its prompts. */
function listed(
	name: string,
	{ node = 'Prompts', list = 'prompts', field = 'prompt' } = {},
): string[] {
	const { parameters } = nodeOf(readExample(name), node);
	const json = JSON.parse(String(parameters.jsonOutput)) as Record<string, IDataObject[]>;
	return (json[list] ?? []).map((entry) => String(entry[field])).sort();
}

/** The workflows of `examples/`, with a stand-in for a language model. */
/** Has a node of another service write what it would send there, and one that reads give these items. */
function standIn(
	{ id: _, ...definition }: WorkflowDefinition & { id: string },
	sent: Record<string, (parameters: INode['parameters']) => unknown>,
	read: Record<string, IDataObject[]> = {},
): WorkflowDefinition {
	const nodes = definition.nodes.map((each): INode => {
		const values = sent[each.name]?.(each.parameters);
		if (values === undefined) return each;
		const assignments = Object.entries(values as Record<string, string>).map(([name, value]) => {
			return { id: name, name, value, type: 'string' };
		});
		const parameters = { mode: 'manual', assignments: { assignments }, options: {} };
		return { ...each, type: 'n8n-nodes-base.set', typeVersion: 3.4, parameters };
	});
	const pinData = Object.fromEntries(
		Object.entries(read).map(([name, rows]) => [name, rows.map((json) => ({ json }))]),
	);
	return { ...definition, nodes, pinData };
}

export function testExamples(scene: Scene, model: () => LanguageModel): void {
	const examples = new Examples(scene);

	/** What n8n knows, each type with its version; only an n8n with the editor tells. */
	let known: string[];
	beforeAll(async () => {
		await examples.open(model().url);
		const types = await scene.client.nodeTypes();
		known = types.flatMap(({ name, version }) => [version].flat().map((each) => `${name} ${each}`));
	});

	test.each(listExamples())(
		'%s can be imported by hand, and says on the canvas what to set and what it costs',
		(name) => {
			const { nodes, connections } = readExample(name);
			expect(known).toEqual(
				expect.arrayContaining(nodes.map(({ type, typeVersion }) => `${type} ${typeVersion}`)),
			);
			expect(nodes.filter((node) => node.credentials ?? node.webhookId)).toEqual([]);
			const names = nodes.map((node) => node.name);
			const targets = Object.values(connections).flatMap((outputs) =>
				Object.values(outputs).flat(2),
			);
			for (const target of targets) expect(names).toContain(target?.node);
			const all = nodes.filter(({ type }) => type === 'n8n-nodes-base.stickyNote');
			const notes = all.map(({ parameters }) => String(parameters.content)).join('\n');
			expect(notes).toMatch(/\*\*Set:\*\* .*credential/);
			expect(notes).toContain('**Costs:**');
			expect(notes).toContain('**Go on from here:**');
		},
	);

	test('overnight-batch: one run sleeps through the night, sorts out what failed, and ends with an error that says so', async () => {
		const { service } = scene;
		service.configure({ latencyMs: 3_600_000 });
		const prompts = listed('overnight-batch');
		// As it comes, it orders nothing.
		const dry = itemsOf(await examples.run('overnight-batch'), 'Videos');
		expect(dry.map(({ dryRun, model }) => [dryRun, model])).toEqual(
			prompts.map(() => [true, 'acme/video-9']),
		);
		expect(scene.tasks).toEqual([]);
		const { options } = nodeOf(readExample('overnight-batch'), 'Generate overnight').parameters;
		const changes = {
			'Generate overnight': { options: { ...(options as object), dryRun: false } },
		};
		const run = await examples.start(await examples.import('overnight-batch', changes));
		await until('all orders', 2 * MINUTE, () => scene.tasks.length === prompts.length);
		await run.suspended();
		const [failed = '', ...finished] = scene.taskIds;
		service.complete(failed, 'FAILURE');
		for (const taskId of finished) service.complete(taskId);
		const night = await run.end();
		expect(night.status).toBe('error');
		expect(night.data.resultData.error?.message).toBe(
			`1 of ${prompts.length} videos of this night need a look: see 'To look into'.`,
		);
		expect(promptsOf(scene.tasks)).toEqual(prompts);
		const videos = itemsOf(night, 'Videos');
		expect(videos.map(({ taskId }) => taskId).sort()).toEqual(finished.sort());
		expect(videos.every(({ imageUrl }) => typeof imageUrl === 'string')).toBe(true);
		expect(itemsOf(night, 'To look into')).toEqual([
			expect.objectContaining({ taskId: failed, error: expect.any(String) }),
		]);
	});

	test('batch-of-prompts: a picture for each prompt, and the one that fails is sorted out', async () => {
		const execution = await examples.run('batch-of-prompts');
		const prompts = listed('batch-of-prompts');
		expect(promptsOf(scene.tasks)).toEqual(prompts);
		expect(itemsOf(execution, 'Pictures').map(({ resultUrls }) => resultUrls)).toEqual(
			Array(prompts.length - 1).fill([expect.stringMatching(/^http.*png$/)]),
		);
		expect(itemsOf(execution, 'To look into')).toEqual([
			expect.objectContaining({ error: expect.stringContaining('content filter') }),
		]);
	});

	describe('approve-before-you-pay', () => {
		const NAME = 'approve-before-you-pay';

		/** Runs it until it asks; answers as its form does. */
		async function order(decision: string): Promise<Execution> {
			const run = await (await examples.start(await examples.import(NAME))).suspended();
			const [asked = {}] = itemsOf(await run.now(), 'Write the message');
			expect([asked.count, asked.costUsd]).toEqual([3, 0.24]);
			expect(asked.subject).toBe('3 pictures for 0.24 USD: shall they be ordered?');
			expect(asked.text).toContain('A red fox in fresh snow');
			const { pathname, search } = new URL(String(asked.formUrl));
			const address = new URL(pathname + search, scene.stage.webhookUrl);
			expect(await (await fetch(address)).text()).toContain('3 pictures for 0.24 USD');
			expect(scene.tasks).toEqual([]);
			const form = new FormData();
			form.set('field-0', decision);
			expect((await fetch(address, { method: 'POST', body: form })).status).toBe(200);
			return succeeded(await run.end());
		}

		test('creates nothing before the answer nor where it is no, and after a yes what was shown', async () => {
			const refused = await order('Order nothing');
			expect(scene.tasks).toEqual([]);
			expect(itemsOf(refused, 'Not ordered')).toHaveLength(1);

			const execution = await order('Order them');
			expect(promptsOf(scene.tasks)).toEqual(listed(NAME));
			expect(itemsOf(execution, 'Dry run').every(({ dryRun }) => dryRun === true)).toBe(true);
			expect(statesOf(execution, 'Pictures')).toEqual(Array(3).fill('SUCCESS'));
		});
	});

	test('image-to-video: each scene becomes a picture, and the picture a video file', async () => {
		const execution = await examples.run('image-to-video');
		const texts = ['scene', 'motion'].flatMap((field) =>
			listed('image-to-video', { node: 'Scenes', list: 'scenes', field }),
		);
		expect(promptsOf(scene.tasks)).toEqual(texts.sort());
		const pictures = itemsOf(execution, 'Generate picture').map(({ resultUrls }) => resultUrls);
		const videos = outputItems(execution, 'Videos');
		const inputs = videos.map(({ json }) => json.input as { image_url?: string });
		expect(inputs.map(({ image_url }) => [image_url])).toEqual(pictures);
		expect(videos.map(({ binary }) => binary?.data?.mimeType)).toEqual(['video/mp4', 'video/mp4']);
	});

	describe('rewrite-refused-prompts', () => {
		const NAME = 'rewrite-refused-prompts';
		test('rewrite-refused-prompts: what the model held back is rewritten and ordered once more, and never again', async () => {
			const prompts = listed(NAME);
			const refused = prompts.find((prompt) => prompt.startsWith('A dragon')) ?? '';
			const execution = await examples.run(NAME);
			expect(promptsOf(scene.tasks)).toEqual([...prompts, `${refused}, for children`].sort());
			const nodes = ['Generate images', 'Order once more'];
			const states = nodes.flatMap((node) => statesOf(execution, node));
			expect(states).toEqual(prompts.map(() => 'SUCCESS'));
			expect(itemsOf(execution, 'To look into')).toEqual([]);

			scene.clear();
			scene.service.configure({ outcome: 'FAILURE' });
			const end = await examples.run(NAME);
			expect(scene.tasks).toHaveLength(2 * prompts.length);
			expect(itemsOf(end, 'Pictures')).toEqual([]);
			expect(itemsOf(end, 'To look into')).toHaveLength(prompts.length);
		});
	});

	test('google-sheets: rows without a status are marked, ordered and written back, each to its own row', async () => {
		const imported = await examples.import('google-sheets');
		const columns = ({ columns }: INode['parameters']) => (columns as IDataObject).value;
		const rows = [
			{ id: 'a', prompt: 'A red fox', status: '' },
			{ id: 'b', prompt: 'An owl', status: 'done' },
			{ id: 'c', prompt: 'A hare', status: '' },
		];
		const definition = standIn(
			imported,
			{ 'Mark as ordered': columns, 'Write results': columns },
			{ 'Get rows': rows },
		);
		const { id } = await scene.client.createWorkflow(definition);
		const run = await (await examples.start({ id, name: 'google-sheets' })).end();
		expect(promptsOf(scene.tasks)).toEqual(['A hare', 'A red fox']);
		expect(itemsOf(run, 'Mark as ordered')).toEqual([
			{ id: 'a', status: 'ordered' },
			{ id: 'c', status: 'ordered' },
		]);
		const written = itemsOf(run, 'Write results');
		expect(written.map(({ id, status }) => [id, status])).toEqual([
			['a', 'done'],
			['c', 'done'],
		]);
		expect(written.map(({ taskId }) => taskId)).toEqual(
			['A red fox', 'A hare'].map(
				(prompt) => scene.tasks.find(({ record }) => promptOf(record) === prompt)?.record.taskId,
			),
		);
		for (const { picture } of written) expect(picture).toMatch(/^http.*png$/);
	});

	test('message-in-slack: one message with the cost, and each failure with its reason', async () => {
		const name = 'message-in-slack';
		const [first = ''] = listed(name);
		const imported = await examples.import(name);
		const prompts = nodeOf(imported, 'Prompts').parameters;
		const list = JSON.parse(String(prompts.jsonOutput)) as { prompts: IDataObject[] };
		const failing = {
			simulate: { outcome: 'FAILURE', failureMessage: 'The filter held it back.' },
		};
		for (const each of list.prompts) if (each.prompt === first) each.additionalInput = failing;
		prompts.jsonOutput = JSON.stringify(list);
		const media = nodeOf(imported, 'Generate images').parameters.options as IDataObject;
		media.additionalInput = '={{ $json.additionalInput ?? {} }}';
		const definition = standIn(imported, { 'Write to Slack': ({ text }) => ({ text }) });
		const trigger = nodeOf(definition, 'Every night');
		Object.assign(trigger, {
			type: 'n8n-nodes-base.manualTrigger',
			typeVersion: 1,
			parameters: {},
		});
		const { id } = await scene.client.createWorkflow(definition);
		const run = await (await examples.start({ id, name })).end();
		expect(itemsOf(run, 'Write to Slack')).toEqual([
			{ text: expect.stringContaining(`• ${first}: The filter held it back`) },
		]);
		const [{ text = '' } = {}] = itemsOf(run, 'Write to Slack');
		expect(text).toMatch(/^2 of 3 pictures are done, for 16 credits\.\n/);
	});

	test('five-variations: each prompt five times, each time with another seed', async () => {
		const execution = await examples.run('five-variations');
		const made = itemsOf(execution, 'Generate images').map(({ prompt, variation, input }) => {
			return [prompt, variation, (input as { seed?: unknown }).seed];
		});
		const wanted = promptsInFile(readExample('five-variations')).flatMap(({ prompt }) =>
			[1, 2, 3, 4, 5].map((seed) => [prompt, seed, seed]),
		);
		expect(made).toEqual(wanted);
		expect(scene.tasks).toHaveLength(wanted.length);
	});

	test('credits-guard: a warning below the minimum, and where the balance cannot be read', async () => {
		const run = async (creditsShape: object) => {
			scene.service.configure({ creditsShape });
			const execution = await examples.run('credits-guard');
			return ['Enough', 'Send the warning'].map((node) => itemsOf(execution, node));
		};
		const warning = (subject: string, text: RegExp) => ({
			subject: expect.stringContaining(subject) as string,
			text: expect.stringMatching(text) as string,
		});
		expect(await run({ balance: 500 })).toEqual([[expect.objectContaining({ balance: 500 })], []]);
		expect(await run({ balance: 499 })).toEqual([[], [warning('running low', /499 .*500/)]]);
		const [, unread] = await run({ hello: 'world' });
		expect(unread).toEqual([warning('could not be read', /balance/)]);
	});

	test('ai-agent-tool: the agent makes the picture it is asked for, and reads the credits', async () => {
		const { id } = await examples.import('ai-agent-tool');
		const say = async (text: string) =>
			await scene.client.chat(id, 'When chat message received', text);

		const answer = await say('A picture of a red fox, please');
		const [address] = scene.tasks[0]?.record.resultUrls ?? [];
		expect(answer).toEqual({ output: `Here it is: ${address}` });

		const credits = await say('How many credits are left?');
		expect(promptsOf(scene.tasks)).toEqual(['A picture of a red fox, please']);
		expect(credits.output).toContain(String(scene.service.balance));
		const { tools = [] } = model().requests.findLast(({ tools }) => tools) ?? {};
		const offered = tools.map((tool) => tool.function.name);
		expect(offered.sort()).toEqual(['Generate_picture', 'Read_credits']);
	});

	test('ai-agent-workflow-tool: the agent answers with the address that the workflow behind its tool returns, or with the reason', async () => {
		const workflow = await examples.import('ai-agent-workflow-tool');
		await scene.client.publish(workflow.id, []);
		const say = async (text: string) =>
			await scene.client.chat(workflow.id, 'When chat message received', text);

		const answer = await say('Make a picture of a red fox, please');
		expect(promptsOf(scene.tasks)).toEqual(['Make a picture of a red fox, please']);
		const [address] = scene.tasks[0]?.record.resultUrls ?? [];
		expect(answer).toEqual({ output: `Here it is: ${address}` });

		scene.service.configure({ outcome: 'FAILURE', failureMessage: 'Unsafe prompt.' });
		expect((await say('Make a picture of a dragon')).output).toContain('Unsafe prompt (task ');
		expect(scene.tasks).toHaveLength(2);
	});

	/** The examples that write to data tables. */
	describe('with data tables', () => {
		async function publish(name: string, changes: Record<string, IDataObject> = {}) {
			const workflow = await examples.import(name, changes);
			await publishTriggers(scene.client, workflow.id, workflow);
			return workflow;
		}

		type Workflow = Awaited<ReturnType<typeof publish>>;

		const order = async (workflow: Workflow) =>
			succeeded(await (await examples.start(workflow)).end());

		async function tablePath(name: string): Promise<string> {
			const { path, tables } = await scene.client.dataTables();
			return `${path}/${tables.find((table) => table.name === name)?.id}`;
		}

		async function rowsOf(table: string): Promise<IDataObject[]> {
			const path = await tablePath(table);
			return (await scene.client.get<{ data: IDataObject[] }>(`${path}/rows`)).data;
		}

		test('two-lanes-with-trigger: each picture is written to its own row once, however often the service calls', async () => {
			const { client, service } = scene;
			service.configure({ callbackCopies: 3 });
			const workflow = await publish('two-lanes-with-trigger');
			const written = async (count: number) =>
				await until(`${count} rows to be written`, 2 * MINUTE, async () => {
					const rows = await rowsOf('media_generation_pictures');
					return rows.filter(({ picture, remark }) => picture ?? remark).length === count;
				});
			await order(workflow);
			await written(3);
			service.configure({ outcome: 'FAILURE' });
			await order(workflow);
			await written(6);
			const { tasks } = scene;
			// Each picture was fetched once.
			expect(scene.requests('media', 'GET')).toHaveLength(3);
			const prompts = listed('two-lanes-with-trigger');
			expect(promptsOf(tasks)).toEqual([...prompts, ...prompts].sort());
			const rows = await rowsOf('media_generation_pictures');
			expect(rows.map(({ prompt }) => prompt).sort()).toEqual(promptsOf(tasks));
			for (const { record, taskId } of tasks) {
				const own = rows.filter((row) => JSON.stringify(row).includes(taskId));
				const isGood = record.state === 'SUCCESS';
				expect(own).toEqual([
					expect.objectContaining({
						prompt: record.input.prompt,
						picture: isGood ? expect.stringMatching(/^http.*png$/) : null,
						credits: isGood ? 8 : null,
						remark: isGood ? null : expect.stringContaining(`(task ${taskId})`),
					}),
				]);
			}
			service.configure({ outcome: 'SUCCESS', createStatus: 400 });
			await order(workflow);
			await written(9);
			const remarks = (await rowsOf('media_generation_pictures')).map(({ remark }) => remark);
			const refused = remarks.filter((remark) => String(remark).includes('(HTTP 400)'));
			expect(refused).toHaveLength(3);
			await client.unpublish(workflow.id);
		});

		test('save-to-storage: each file is in the storage, and its row has a link that lasts', async () => {
			const files = new Map<string, number>();
			const storage = await listen((request, response) => {
				let bytes = 0;
				request.on('data', (chunk: Buffer) => (bytes += chunk.length));
				request.on('end', () => {
					const isUpload = request.method === 'PUT';
					if (isUpload) files.set(new URL(request.url ?? '', 'http://s3.test').pathname, bytes);
					response.setHeader('Content-Type', 'application/xml');
					response.end(isUpload ? '' : '<LocationConstraint>us-east-1</LocationConstraint>');
				});
			});
			const access = { accessKeyId: 'key', secretAccessKey: 'secret', forcePathStyle: true };
			const address = { endpoint: storage.url, region: 'us-east-1' };
			await examples.addCredential('Storage', 's3', { ...access, ...address });
			await order(await examples.import('save-to-storage'));
			await storage.close();
			expect(promptsOf(scene.tasks)).toEqual(listed('save-to-storage'));
			const names = scene.tasks.map(
				({ taskId, record }, index) =>
					`${fileStem(taskId, { prompt: String(record.input.prompt) }, {}, String(index + 1))}.png`,
			);
			expect([...files.keys()].sort()).toEqual(names.map((name) => `/pictures/${name}`).sort());
			expect([...files.values()].every((bytes) => bytes > 1000)).toBe(true);
			const rows = await rowsOf('media_generation_saved_pictures');
			for (const [index, { record }] of scene.tasks.entries()) {
				expect(rows.filter(({ prompt }) => prompt === record.input.prompt)).toEqual([
					expect.objectContaining({
						picture: `https://storage.example.com/pictures/${names[index]}`,
						remark: null,
					}),
				]);
			}
		}, 120_000);

		describe('records-in-a-data-table', () => {
			const TABLE = 'media_generation_tasks';
			let workflow: Workflow;
			let address: string;

			beforeAll(async () => {
				// Minutes are too long for a test.
				workflow = await publish('records-in-a-data-table', { 'Wait a moment': { amount: 3 } });
				const trigger = nodeOf(workflow, 'Media Generation Trigger');
				const url = scene.stage.webhookUrl + scene.client.webhookPath(trigger, 'callback');
				address = callbackAddress(url, scene.service.apiKey);
			}, 60_000);

			async function statesOfRecords(taskIds: string[]) {
				const rows = await rowsOf(TABLE);
				const of = (taskId: string) => rows.filter((row) => row.taskId === taskId);
				return taskIds.map((taskId) => of(taskId).map(({ state }) => state));
			}

			const untilSucceeded = async (taskIds: string[]) =>
				await until('the records to be SUCCESS', MINUTE, async () =>
					(await statesOfRecords(taskIds)).every((states) => states.join() === 'SUCCESS'),
				);

			/** What a node put out in all executions of the workflow. */
			async function everyItem(node: string): Promise<IDataObject[]> {
				const { client } = scene;
				const executions = await client.listExecutions({ workflowId: workflow.id });
				const all = executions.map(async ({ id }) => itemsOf(await client.getExecution(id), node));
				return (await Promise.all(all)).flat();
			}

			test('an order is put on record, and its callback adds the result once', async () => {
				scene.service.configure({ callbackCopies: 3 });
				await order(workflow);
				const { tasks } = scene;
				expect(promptsOf(tasks)).toEqual(listed('records-in-a-data-table'));
				await untilSucceeded(scene.taskIds);
				for (const row of await rowsOf(TABLE)) {
					expect(row).toMatchObject({
						resultUrls: expect.stringMatching(/^http.*png$/),
						creditsConsumed: 8,
						finishedAt: expect.any(String),
					});
					expect(JSON.parse(String(row.record))).toMatchObject({ input: { prompt: row.prompt } });
				}
				await scene.client.waitForExecutions(workflow.id, 1 + tasks.length, MINUTE);
				const results = (await everyItem('Results')).map(({ taskId }) => taskId);
				expect(results.sort()).toEqual(scene.taskIds.sort());
			});

			test('a task that is not on record is left alone, and one whose record comes late is not', async () => {
				const { client, stage } = scene;
				const [stranger = '', taskId = ''] = stage.finishedTasks(2);
				for (const id of [stranger, taskId]) expect(await scene.deliver(address, id)).toBe(200);
				const row = { taskId, prompt: 'A quick task', state: 'PENDING' };
				await client.send('POST', `${await tablePath(TABLE)}/insert`, { data: [row] });
				await untilSucceeded([taskId]);
				await until('the stranger to be given up', MINUTE, async () => {
					const all = await client.listExecutions({ workflowId: workflow.id });
					return all.every(({ status }) => status === 'success');
				});
				expect(await statesOfRecords([stranger])).toEqual([[]]);
				expect(await everyItem('Not ours')).toHaveLength(1);
			});
		});
	});
}

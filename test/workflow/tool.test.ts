import { type IDataObject, type INode, NodeHelpers, type RelatedExecution } from 'n8n-workflow';

import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
import { MediaGenerationCredits } from '../../nodes/MediaGeneration/MediaGenerationCredits.node';
import { caught } from '../unit/support';
import {
	agentsContext,
	buildWorkflow,
	executeContext,
	startWorkflow,
	type TestNode,
	type TestWorkflow,
	toolContext,
} from './engine';
import { beginning } from './stored';
import { field, hasErrorOutput, imageNode, item, jsonOf, prompts, stage, text } from './support';
import { passTime, time } from './time';

const on = stage();

const AGENT = '@n8n/n8n-nodes-langchain.agent';
const MCP = '@n8n/n8n-nodes-langchain.mcpTrigger';

/** The tool with a prompt that the agent has written. */
const tool = (simulate: IDataObject = {}, more: IDataObject = {}, options: IDataObject = {}) => {
	const all = { additionalInput: JSON.stringify({ simulate }), ...options };
	const parameters = { prompt: 'A cat', options: all, ...more };
	return on.workflow({ type: 'mediaGenerationTool', parameters });
};

/** What the caller gets, by the ways on which n8n runs a tool: supplied to its caller, or as a node. */
const ways: Array<[string, (test: TestWorkflow) => Promise<unknown>]> = [
	['supplied', async (test) => await answerOf(toolContext(test, AGENT))],
	['as a node', async (test) => await answerOf(executeContext(test))],
	["by n8n's Agents, without an execution", async (test) => await answerOf(agentsContext(test))],
];

async function answerOf(context: ReturnType<typeof toolContext>): Promise<unknown> {
	const outputs = await passTime(new MediaGeneration().execute.call(context));
	return jsonOf(outputs?.[0] ?? []);
}

/** A task that takes too long, and what an agent is told of it. */
const HOURS = { latencyMs: 3_600_000 };
const LATE: Parameters<typeof tool> = [HOURS, {}, { timeout: 30 }];
const late = { state: 'PENDING', timedOut: true, next: text('Do not order it again') };

const FAILED = { outcome: 'FAILURE', failureMessage: 'Unsafe prompt.' };
const failed = { state: 'FAILURE', error: text('Unsafe prompt'), next: text('Change the prompt') };
const CHARGED = { outcome: 'FAILURE', extraFields: { creditsConsumed: 8 } };
const charged = { state: 'FAILURE', next: text('do not try again') };
const MINUTES = { latencyMs: 90_000 };
const pending = { state: 'PENDING', next: text('') };
const done = { state: 'SUCCESS' };
const DRY = { estimatedCostUsd: 0.08, dryRun: true, next: text('Nothing was ordered') };
const LOST = {
	error: text('It is not known whether the task was created'),
	next: text('Do not order it again'),
};

describe.each(ways)('a tool that is run %s', (_way, call) => {
	it('answers with the few fields that an agent can use', async () => {
		expect(await call(tool())).toEqual([
			{
				taskId: on.taskIds[0],
				state: 'SUCCESS',
				resultUrls: [text('/media/')],
				creditsConsumed: expect.any(Number) as number,
				estimatedCostUsd: 0.08,
			},
		]);
	});

	it('answers with the id of a task that takes too long, and says not to order it again', async () => {
		expect(await call(tool(...LATE))).toMatchObject([{ taskId: on.taskIds[0], ...late }]);
	});

	it('refuses to notify a trigger before a task is created', async () => {
		const callbackUrl = 'https://n8n.test/webhook/x/callback';
		const notifying = tool({}, { completion: 'trigger', callbackUrl });
		const { message } = await caught(async () => await call(notifying));
		expect(message).toContain('A tool of an AI agent cannot notify a trigger');
		expect(on.creates).toEqual([]);
	});
});

describe('a tool answers', () => {
	const call = async (test: TestWorkflow) => await answerOf(toolContext(test, AGENT));

	it.each<[string, Parameters<typeof tool>, tasks: number, IDataObject]>([
		['a dry run with the cost, and that nothing was ordered', [{}, {}, { dryRun: true }], 0, DRY],
		['what may have been taken with not to order it again', [{ createWay: 'lost' }], 1, LOST],
	])('%s', async (_what, given, tasks, answer) => {
		expect(await call(tool(...given))).toEqual([answer]);
		expect(on.creates).toHaveLength(tasks);
	});

	it.each<[string, Parameters<typeof tool>, object, TestNode?]>([
		['with the reason of a failed task, and does not end the agent', [FAILED], failed],
		['so that a failed task that is paid for is not tried again', [CHARGED], charged],
		[
			'a late task so, too, where failed items have an output of their own',
			LATE,
			late,
			hasErrorOutput,
		],
		['at once where it is to return immediately', [HOURS, { completion: 'return' }], pending],
		['when it has held, whatever Sleep After says', [MINUTES, {}, { suspendAfter: 0.5 }], done],
		['also where its node is to be tried again', [], done, { retryOnFail: true }],
	])('%s', async (_what, given, answer, ...[more]) => {
		const test = tool(...given);
		const answers = await call({ ...test, node: { ...test.node, ...more } });
		expect(answers).toMatchObject([{ taskId: on.taskIds[0], ...answer }]);
		expect(answers).not.toHaveProperty('0.record');
	});
});

it.each<TestNode>([{}, { retryOnFail: true }])(
	'orders the same anew when the agent asks anew (%j)',
	async (more) => {
		const test = tool();
		const context = toolContext({ ...test, node: { ...test.node, ...more } }, AGENT);
		for (const taskId of [0, 1]) {
			expect(await answerOf(context)).toMatchObject([{ taskId: on.taskIds[taskId] }]);
		}
		expect(on.creates).toHaveLength(2);
	},
);

it('orders the same twice when an agent asks at once, for two items of a batch', async () => {
	// n8n gives both calls the same run and item.
	const context = toolContext(tool({ latencyMs: 20_000 }), AGENT);
	const calls = [0, 1000].map(async (ms) => {
		await new Promise((resolve) => setTimeout(resolve, ms));
		return await new MediaGeneration().execute.call(context);
	});
	const answers = await passTime(Promise.all(calls));
	const taskIds = answers.map((outputs) => outputs?.[0]?.[0]?.json.taskId);
	expect(new Set(taskIds)).toEqual(new Set(on.taskIds));
	expect(on.taskIds).toHaveLength(2);
});

/** A run in a workflow that is called, as n8n's engine stores and begins it. */
async function calledBy(
	parentExecution: Partial<RelatedExecution>,
	node: TestNode,
	{ items, mode = 'integrated' }: Pick<TestWorkflow, 'items' | 'mode'> = {},
) {
	const test = { ...on.workflow(node, items), mode };
	const caller = { executionId: '7', workflowId: 'caller', shouldResume: true, ...parentExecution };
	const stored = (tested: INode) =>
		beginning(
			{ node: tested, data: { main: [items ?? [{ json: {} }]] }, source: null },
			{ parentExecution: caller },
		);
	return await passTime(startWorkflow(test, stored).result);
}

describe('a workflow that is a tool', () => {
	/** The caller has no execution: an MCP server in one process. */
	const ofServer = { executionId: '__UNKNOWN__' };
	const contextOf = (type: string, agoMs = 0) => ({
		executionContext: {
			version: 1 as const,
			source: 'webhook' as const,
			establishedAt: Date.now() - agoMs,
			triggerNode: { name: 'Trigger', type },
		},
	});
	const order = (options: IDataObject = {}): TestNode =>
		imageNode({ ...options }, { parameters: { prompt: 'A cat' } });
	const slow = (options: IDataObject = {}) =>
		order({ additionalInput: JSON.stringify({ simulate: MINUTES }), ...options });

	it.each<[string, () => Partial<RelatedExecution>]>([
		['in one process', () => ofServer],
		['on a worker', () => contextOf(MCP)],
	])(
		'of an MCP server answers within the minute that clients wait, with the id and not to order again (%s)',
		async (_where, caller) => {
			const { error } = await calledBy(caller(), slow());
			expect(on.elapsed).toBeLessThan(60_000);
			expect(error?.message).toContain(`(task ${on.taskIds[0]})`);
			expect(error?.message).toContain('do not order it again');
		},
	);

	it('of an MCP server waits for the rest of that minute only, if the caller has waited before', async () => {
		const { error } = await calledBy(contextOf(MCP, 40_000), slow());
		expect(on.elapsed).toBeLessThan(20_000);
		expect(error?.message).toContain('do not order it again');
	});

	it('of an MCP server names all tasks of a batch that are not finished', async () => {
		const items = prompts(item('a', MINUTES), item('b', MINUTES));
		const { error } = await calledBy(ofServer, imageNode(), { items });
		for (const taskId of on.taskIds) expect(error?.message).toContain(taskId);
		expect(on.taskIds).toHaveLength(2);
	});

	it.each<[string, () => Partial<RelatedExecution>, TestWorkflow['mode']?]>([
		['of a chat', () => contextOf('@n8n/n8n-nodes-langchain.chatTrigger')],
		['whose MCP server does not wait', () => ({ ...ofServer, shouldResume: false })],
		['that is retried by itself', () => ofServer, 'retry'],
	])('%s waits to the end', async (_what, caller, mode = 'integrated') => {
		const { output } = await calledBy(caller(), slow(), { mode });
		expect(field(output, 'state')).toEqual(['SUCCESS']);
	});
});

describe('the patience of whoever calls a tool', () => {
	const waited = async (caller: string, options: IDataObject = {}) => {
		const startedAt = on.elapsed;
		await answerOf(toolContext(tool(HOURS, {}, options), caller));
		return Math.round((on.elapsed - startedAt) / 1000);
	};

	it('is not over before the task id is told, also where the service does not answer at its end', async () => {
		const context = toolContext(tool(HOURS), MCP);
		const { httpRequestWithAuthentication: request } = context.helpers;
		context.helpers.httpRequestWithAuthentication = async function (...given) {
			const { method, timeout = 0 } = given[1];
			if (method === 'POST' || on.elapsed < 45_000) return await request.call(this, ...given);
			await new Promise((resolve) => setTimeout(resolve, timeout));
			throw new Error('timeout exceeded');
		};
		expect(await answerOf(context)).toMatchObject([{ taskId: on.taskIds[0], ...late }]);
		expect(on.elapsed).toBeLessThan(60_000);
	});

	it.each(['generate', 'wait'])(
		"counts from the call, also where n8n's database is slow (%s)",
		async (operation) => {
			const { taskId = '' } =
				operation === 'wait' ? on.service.createTask('a/b', { prompt: 'A', simulate: HOURS }) : {};
			const resource = operation === 'wait' ? 'task' : 'image';
			const context = toolContext(tool(HOURS, { resource, operation, taskId }), MCP);
			const lookUp = context.getCredentials.bind(context);
			context.getCredentials = async (type, itemIndex) => {
				await new Promise((resolve) => setTimeout(resolve, 20_000));
				return await lookUp(type, itemIndex);
			};
			expect(await answerOf(context)).toMatchObject([{ taskId: on.taskIds[0], ...late }]);
			expect(on.elapsed).toBeLessThan(60_000);
		},
	);

	it.each(['wait', 'return'])(
		'sees nothing created after its end, and hears why (%s)',
		async (completion) => {
			on.service.configure({ concurrencyLimit: 0 });
			setTimeout(() => on.service.configure({ concurrencyLimit: 9 }), 52_000);
			const answer = await answerOf(toolContext(tool({}, { completion }), MCP));
			expect(on.elapsed).toBeLessThan(60_000);
			await time.pass(600_000);
			expect(on.taskIds).toEqual([]);
			expect(answer).toEqual([{ error: text('HTTP 429'), advice: text('Try again later') }]);
		},
	);

	it('is the timeout of the node for an agent, and what was chosen for both', async () => {
		expect(await waited(AGENT)).toBeGreaterThanOrEqual(600);
		expect(await waited(MCP, { timeout: 70 })).toBeGreaterThanOrEqual(70);
	});
});

it.each([
	['the balance alone', {}, { balance: 100_000 }],
	[
		'the record where the balance is not known',
		{ amounts: { a: '$balance' } },
		{ balance: null, record: { amounts: { a: 100_000 } } },
	],
])('the credits as a tool answer with %s', async (_what, shape, answer) => {
	if (Object.keys(shape).length > 0) on.service.configure({ creditsShape: shape });
	const items = [{ json: { query: 'How many?' } }];
	const credits = on.workflow({ type: 'mediaGenerationCreditsTool' }, items);
	const context = toolContext(credits, AGENT);
	const [output] = await new MediaGenerationCredits().execute.call(context);
	expect(output?.map(({ json }) => json)).toEqual([answer]);
});

it.each<[IDataObject, string, type?: string]>([
	[{}, 'one image from a text prompt'],
	[{ resource: 'video' }, 'one short video'],
	[{ resource: 'task', operation: 'create' }, 'one task'],
	[{ resource: 'task', operation: 'get' }, 'ordered before'],
	[{ resource: 'task', operation: 'wait' }, 'ordered before'],
	[{ resource: 'task', operation: 'redeliver' }, 'to its workflow again'],
	// Of a tool that was saved with an automatic text.
	[{ descriptionType: 'auto' }, 'Call it once for each image'],
	[{ descriptionType: 'manual', toolDescription: 'Mine' }, 'Mine'],
	[{}, 'how many credits are left', 'mediaGenerationCreditsTool'],
])('what the language model is told fits the operation (%j)', (parameters, told, ...[given]) => {
	const type = given ?? 'mediaGenerationTool';
	const { workflow, tested } = buildWorkflow(on.workflow({ type, parameters }));
	const nodeType = workflow.nodeTypes.getByNameAndVersion(type);
	expect(NodeHelpers.getToolDescriptionForNode(tested, nodeType)).toContain(told);
});

import type { INode, WorkflowExecuteMode } from 'n8n-workflow';
import nock from '../../nock';

import {
	isRegistered,
	register,
	triggerOfThisWorkflow,
	unregister,
} from '../../../nodes/MediaGeneration/callback/triggerUrl';
import { Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { MediaGenerationTrigger } from '../../../nodes/MediaGeneration/MediaGenerationTrigger.node';
import {
	API_KEY,
	executeContext,
	hookContext,
	TRIGGER,
	TRIGGER_PATH,
	type TestWorkflow,
} from '../../workflow/engine';
import { caught } from '../support';

const credential = { baseUrl: 'https://api.example.com', apiKey: API_KEY };
const URL_OF_TRIGGER = `https://n8n.test${TRIGGER_PATH}`;

type StaticData = NonNullable<TestWorkflow['staticData']>;

const triggerHook = (staticData: StaticData, id = 'trigger', webhookId = TRIGGER.webhookId ?? '') =>
	hookContext({ node: { ...TRIGGER, id, webhookId }, credential, staticData }).hook;

/** What an action node of the workflow with this static data finds. */
const found = async (staticData: StaticData) =>
	await triggerOfThisWorkflow(executeContext({ node: {}, credential, staticData }));

it('an action node finds the trigger that was activated in its workflow', async () => {
	const staticData = {};
	register(triggerHook(staticData));
	expect(await found(staticData)).toBe(URL_OF_TRIGGER);
});

it('a trigger is registered once it is activated, and no more when its URL has changed', () => {
	const staticData = {};
	expect(isRegistered(triggerHook(staticData))).toBe(false);
	register(triggerHook(staticData));
	expect(isRegistered(triggerHook(staticData))).toBe(true);
	expect(isRegistered(triggerHook(staticData, 'trigger', 'another'))).toBe(false);
});

it('a trigger that was published under another public address is found at the present one', async () => {
	const staticData: StaticData = {
		global: {
			mediaGenerationTriggers: {
				trigger: { url: `https://gone.test${TRIGGER_PATH}`, workflowId: 'workflow' },
			},
		},
	};
	const context = executeContext({ node: {}, credential, staticData });
	context.workflow.nodes.Trigger = { ...TRIGGER, id: 'trigger' } as INode;
	expect(await triggerOfThisWorkflow(context)).toBe(URL_OF_TRIGGER);
});

it('activating again replaces the URL', async () => {
	const staticData = {};
	register(triggerHook(staticData, 'trigger', 'first'));
	register(triggerHook(staticData));
	expect(await found(staticData)).toBe(URL_OF_TRIGGER);
});

it('a trigger that was deactivated is not found, and the other one is', async () => {
	const staticData = {};
	register(triggerHook(staticData));
	register(triggerHook(staticData, 'second', 'another'));
	await expect(found(staticData)).rejects.toThrow('more than one Media Generation Trigger');
	unregister(triggerHook(staticData, 'second', 'another'));
	expect(await found(staticData)).toBe(URL_OF_TRIGGER);
});

it('what else the workflow keeps in its static data stays', () => {
	const staticData: StaticData = { global: { counter: 7 } };
	register(triggerHook(staticData));
	unregister(triggerHook(staticData));
	expect(staticData).toHaveProperty('global.counter', 7);
});

it.each([
	['nothing', {}],
	['something else', { global: { mediaGenerationTriggers: 'x' } }],
	[
		'an entry without a URL',
		{ global: { mediaGenerationTriggers: { a: { workflowId: 'workflow' } } } },
	],
	[
		'the trigger of the workflow it was copied from',
		{ global: { mediaGenerationTriggers: { a: { url: URL_OF_TRIGGER, workflowId: 'original' } } } },
	],
])('no trigger is found where the static data holds %s', async (_what, staticData) => {
	const error = await caught(async () => await found(staticData as unknown as StaticData));
	expect(error).toMatchObject({
		message: 'No active Media Generation Trigger was found in this workflow',
		description: expect.stringContaining(
			"Add a Media Generation Trigger and publish the workflow, or paste the URL of a trigger into 'Callback URL'",
		),
	});
});

describe('listening for a test event', () => {
	const { webhookMethods } = new MediaGenerationTrigger();
	const testHook = (staticData: StaticData) =>
		hookContext({ node: { ...TRIGGER, id: 'trigger' }, credential, staticData }, 'manual').hook;

	it('registers nothing, since its URL is gone a moment later', async () => {
		const staticData = {};
		expect(await webhookMethods.default.checkExists.call(testHook(staticData))).toBe(true);
		await expect(found(staticData)).rejects.toThrow('No active Media Generation Trigger');
	});

	it('leaves the production URL of the active workflow alone when it ends', async () => {
		const staticData = {};
		register(triggerHook(staticData));
		await webhookMethods.default.delete.call(testHook(staticData));
		expect(await found(staticData)).toBe(URL_OF_TRIGGER);
	});
});

describe('activation', () => {
	const { default: methods } = new MediaGenerationTrigger().webhookMethods;

	it('registers the trigger, and deactivation takes it back', async () => {
		const staticData = {};
		const hook = triggerHook(staticData);
		expect(await methods.checkExists.call(hook)).toBe(false);
		await methods.create.call(hook);
		expect(await methods.checkExists.call(hook)).toBe(true);
		await methods.delete.call(hook);
		await expect(found(staticData)).rejects.toThrow('No active Media Generation Trigger');
	});
});

describe('a worker of queue mode, which has no static data of the workflow', () => {
	const onWorker = (
		mode: WorkflowExecuteMode,
		triggers: Array<Partial<INode>>,
		signal?: AbortSignal,
	) => {
		const context = executeContext({ node: {}, credential }, signal);
		jest.spyOn(context, 'getMode').mockReturnValue(mode);
		for (const [index, trigger] of triggers.entries()) {
			const name = `Finished ${index}`;
			context.workflow.nodes[name] = { ...TRIGGER, name, ...trigger } as INode;
		}
		return context;
	};

	const published = async (mode: WorkflowExecuteMode, ...triggers: Array<Partial<INode>>) =>
		await triggerOfThisWorkflow(onWorker(mode, triggers));

	it('finds the trigger that the published workflow has', async () => {
		expect(await published('webhook', {})).toBe(URL_OF_TRIGGER);
	});

	it('does not find a trigger that is switched off', async () => {
		await expect(published('webhook', { disabled: true })).rejects.toThrow(
			'No active Media Generation Trigger',
		);
	});

	it('wants to be told which where there are two', async () => {
		await expect(published('webhook', {}, { webhookId: 'another' })).rejects.toThrow(
			'more than one Media Generation Trigger',
		);
	});

	describe('in a run by hand, whose workflow may not be published', () => {
		/** n8n's answer at the address of a trigger, with the methods that it has a webhook for. */
		const n8n = (webhookId: string, methods: string) =>
			nock('https://n8n.test', { reqheaders: { origin: 'https://n8n.test' } })
				.options(`/webhook/${webhookId}/callback`)
				.reply(204, undefined, { 'Access-Control-Allow-Methods': methods });

		it('finds the trigger that n8n has a webhook for, and asks once for each', async () => {
			n8n('3f1c2a', 'OPTIONS, POST');
			n8n('another', 'OPTIONS');
			expect(await published('manual', {}, { webhookId: 'another' })).toBe(URL_OF_TRIGGER);
			expect(nock.isDone()).toBe(true);
		});

		it('does not find a trigger that is not published', async () => {
			n8n('3f1c2a', 'OPTIONS');
			await expect(published('manual', {})).rejects.toThrow('No active Media Generation Trigger');
		});

		it('asks in a sub-workflow that a run by hand calls, which is run as it stands in the editor', async () => {
			n8n('3f1c2a', 'OPTIONS');
			const context = onWorker('integrated', [{}]);
			Object.assign(context.additionalData, { rootExecutionMode: 'manual' });
			await expect(triggerOfThisWorkflow(context)).rejects.toThrow(
				'No active Media Generation Trigger',
			);
		});

		it('asks in a retry, which may be of a run by hand', async () => {
			n8n('3f1c2a', 'OPTIONS');
			await expect(published('retry', {})).rejects.toThrow('No active Media Generation Trigger');
		});

		it('takes the trigger for published in a retry where n8n does not answer, which may be of any run', async () => {
			nock('https://n8n.test').options(TRIGGER_PATH).reply(502);
			expect(await published('retry', {})).toBe(URL_OF_TRIGGER);
		});

		const UNKNOWN = `It is not known whether the Media Generation Trigger is published: ${URL_OF_TRIGGER}`;

		it.each([
			['somebody else answers', () => nock('https://n8n.test').options(TRIGGER_PATH).reply(204)],
			[
				'nobody answers',
				() =>
					nock('https://n8n.test')
						.options(TRIGGER_PATH)
						.replyWithError(Object.assign(new Error('No'), { code: 'ECONNREFUSED' })),
			],
		])('says so where %s at its address', async (_what, answer) => {
			answer();
			expect(await caught(async () => await published('manual', {}))).toMatchObject({
				message: UNKNOWN,
				description: expect.stringContaining("paste it into 'Callback URL'"),
			});
		});

		it("says what to allow where n8n's protection refuses its own address", async () => {
			const context = onWorker('manual', [{}]);
			const refusal = Object.assign(new Error('refused'), {
				name: 'SsrfBlockedIpError',
				ip: '10.0.0.7',
			});
			jest.spyOn(context.helpers, 'httpRequest').mockRejectedValue(refusal);
			expect(await caught(async () => await triggerOfThisWorkflow(context))).toMatchObject({
				message: `n8n does not let this node ask for the trigger: ${URL_OF_TRIGGER}`,
				description: expect.stringContaining("refused '10.0.0.7'"),
			});
		});

		it('is stopped with the execution', async () => {
			const stopped = new AbortController();
			stopped.abort();
			const context = onWorker('manual', [{}], stopped.signal);
			expect(await caught(async () => await triggerOfThisWorkflow(context))).toBeInstanceOf(
				Stopped,
			);
		});
	});
});

it("is not activated where n8n's engine v2 runs the workflow", async () => {
	const { hook } = hookContext({ node: TRIGGER, credential, settings: { engineType: 'v2' } });
	const { checkExists } = new MediaGenerationTrigger().webhookMethods.default;
	expect(await caught(async () => await checkExists.call(hook))).toMatchObject({
		message: expect.stringContaining('does not work with the engine v2'),
	});
});

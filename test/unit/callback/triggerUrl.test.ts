import type { INode, WorkflowExecuteMode } from 'n8n-workflow';

import {
	isRegistered,
	register,
	triggerOfThisWorkflow,
	unregister,
} from '../../../nodes/MediaGeneration/callback/triggerUrl';
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
const found = (staticData: StaticData) =>
	triggerOfThisWorkflow(executeContext({ node: {}, credential, staticData }));

it('an action node finds the trigger that was activated in its workflow', () => {
	const staticData = {};
	register(triggerHook(staticData));
	expect(found(staticData)).toBe(URL_OF_TRIGGER);
});

it('a trigger is registered once it is activated, and no more when its URL has changed', () => {
	const staticData = {};
	expect(isRegistered(triggerHook(staticData))).toBe(false);
	register(triggerHook(staticData));
	expect(isRegistered(triggerHook(staticData))).toBe(true);
	expect(isRegistered(triggerHook(staticData, 'trigger', 'another'))).toBe(false);
});

it('activating again replaces the URL', () => {
	const staticData = {};
	register(triggerHook(staticData, 'trigger', 'first'));
	register(triggerHook(staticData));
	expect(found(staticData)).toBe(URL_OF_TRIGGER);
});

it('a trigger that was deactivated is not found, and the other one is', () => {
	const staticData = {};
	register(triggerHook(staticData));
	register(triggerHook(staticData, 'second', 'another'));
	expect(() => found(staticData)).toThrow('more than one Media Generation Trigger');
	unregister(triggerHook(staticData, 'second', 'another'));
	expect(found(staticData)).toBe(URL_OF_TRIGGER);
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
	const error = await caught(() => found(staticData as unknown as StaticData));
	expect(error).toMatchObject({
		message: 'No active Media Generation Trigger was found in this workflow',
		description: expect.stringContaining(
			"Add one and publish the workflow, or paste the URL of a trigger into 'Callback URL'",
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
		expect(() => found(staticData)).toThrow('No active Media Generation Trigger');
	});

	it('leaves the production URL of the active workflow alone when it ends', async () => {
		const staticData = {};
		register(triggerHook(staticData));
		await webhookMethods.default.delete.call(testHook(staticData));
		expect(found(staticData)).toBe(URL_OF_TRIGGER);
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
		expect(() => found(staticData)).toThrow('No active Media Generation Trigger');
	});
});

describe('a worker of queue mode, which has no static data of the workflow', () => {
	const onWorker = (mode: WorkflowExecuteMode, triggers: Array<Partial<INode>>) => {
		const context = executeContext({ node: {}, credential });
		jest.spyOn(context, 'getMode').mockReturnValue(mode);
		for (const [index, trigger] of triggers.entries()) {
			const name = `Finished ${index}`;
			context.workflow.nodes[name] = { ...TRIGGER, name, ...trigger } as INode;
		}
		return context;
	};

	it('finds the trigger that the published workflow has', () => {
		expect(triggerOfThisWorkflow(onWorker('webhook', [{}]))).toBe(URL_OF_TRIGGER);
	});

	it('does not find a trigger that is switched off', () => {
		const context = onWorker('webhook', [{ disabled: true }]);
		expect(() => triggerOfThisWorkflow(context)).toThrow('No active Media Generation Trigger');
	});

	it('wants to be told which where there are two', () => {
		const context = onWorker('webhook', [{}, { webhookId: 'another' }]);
		expect(() => triggerOfThisWorkflow(context)).toThrow('more than one Media Generation Trigger');
	});

	it('does not take a run by hand for that of a published workflow', () => {
		const context = onWorker('manual', [{}]);
		expect(() => triggerOfThisWorkflow(context)).toThrow('No active Media Generation Trigger');
	});
});

it("is not activated where n8n's engine v2 runs the workflow", async () => {
	const { hook } = hookContext({ node: TRIGGER, credential, settings: { engineType: 'v2' } });
	const { checkExists } = new MediaGenerationTrigger().webhookMethods.default;
	expect(await caught(async () => await checkExists.call(hook))).toMatchObject({
		message: expect.stringContaining('does not work with the engine v2'),
	});
});

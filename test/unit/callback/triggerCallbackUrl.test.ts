import type { IDataObject, WorkflowExecuteMode } from 'n8n-workflow';

import {
	recipientAt,
	triggerOfThisWorkflow,
} from '../../../nodes/MediaGeneration/callback/callbackAddress';
import { MediaGenerationTrigger } from '../../../nodes/MediaGeneration/MediaGenerationTrigger.node';
import {
	executeContext,
	hookContext,
	TRIGGER,
	TRIGGER_PATH,
	type TestNode,
	type TestWorkflow,
} from '../../workflow/engine';
import { caught } from '../support';

const URL_OF_TRIGGER = `https://n8n.test${TRIGGER_PATH}`;
const SECOND: TestNode = { ...TRIGGER, id: 'second', webhookId: 'another' };

const { default: hooks } = new MediaGenerationTrigger().webhookMethods;
const hookOf = (staticData: IDataObject, node = TRIGGER, more: Partial<TestWorkflow> = {}) =>
	hookContext({ node: { id: 'trigger-0', ...node }, staticData, ...more }).hook;
const publish = async (staticData: IDataObject, node?: TestNode) =>
	await hooks.create.call(hookOf(staticData, node));

interface Given {
	mode?: WorkflowExecuteMode;
	/** Of the execution that called this one. */
	rootMode?: WorkflowExecuteMode;
	triggers?: TestNode[];
	staticData?: IDataObject;
}

const contextOf = ({ mode = 'manual', rootMode, ...test }: Given = {}) => {
	const context = executeContext({ triggers: [TRIGGER], ...test });
	context.getMode = () => mode;
	if (rootMode) Object.assign(context.additionalData, { rootExecutionMode: rootMode });
	return context;
};

/** What an action node finds. */
const found = async (given?: Given) => triggerOfThisWorkflow(contextOf(given));
const refusal = async (given?: Given) =>
	(await caught(async () => await found(given))) as Error & { description: string };

const NONE = 'No published Media Generation Trigger was found in this workflow';
const SEVERAL = 'This workflow has more than one Media Generation Trigger';

describe('a published trigger', () => {
	it('is found by the action nodes of its workflow, until it is published no more', async () => {
		const staticData: IDataObject = { global: { counter: 7 } };
		expect(await hooks.checkExists.call(hookOf(staticData))).toBe(false);
		await publish(staticData);
		expect(await hooks.checkExists.call(hookOf(staticData))).toBe(true);
		expect(await found({ staticData })).toBe(URL_OF_TRIGGER);
		await hooks.delete.call(hookOf(staticData));
		expect(await hooks.checkExists.call(hookOf(staticData))).toBe(false);
		expect(staticData).toMatchObject({ global: { counter: 7 } });
	});

	it('is found beside another that is not published, and not beside another that is', async () => {
		const staticData = {};
		const triggers = [TRIGGER, SECOND];
		await publish(staticData);
		expect(await found({ staticData, triggers })).toBe(URL_OF_TRIGGER);
		await publish(staticData, SECOND);
		await expect(found({ staticData, triggers })).rejects.toThrow(SEVERAL);
		await hooks.delete.call(hookOf(staticData, SECOND));
		expect(await found({ staticData, triggers })).toBe(URL_OF_TRIGGER);
	});

	it('is found by an action node that an AI agent has as a tool, whose type has another name', async () => {
		const staticData = {};
		await publish(staticData);
		const node = { type: 'mediaGenerationTool' };
		const context = executeContext({ node, triggers: [TRIGGER], staticData });
		expect(triggerOfThisWorkflow(context)).toBe(URL_OF_TRIGGER);
	});

	it('is left alone by a test event, which publishes nothing either', async () => {
		const staticData = {};
		const testHook = () =>
			hookContext({ node: { id: 'trigger-0', ...TRIGGER }, staticData }, 'manual').hook;
		expect(await hooks.checkExists.call(testHook())).toBe(true);
		expect(staticData).toEqual({});
		await publish(staticData);
		await hooks.delete.call(testHook());
		expect(await found({ staticData })).toBe(URL_OF_TRIGGER);
	});

	it("is none where n8n's engine v2 runs the workflow", async () => {
		const hook = hookOf({}, TRIGGER, { settings: { engineType: 'v2' } });
		await expect(async () => await hooks.checkExists.call(hook)).rejects.toThrow(
			'does not work with the engine v2',
		);
	});
});

it('the trigger at an address is named, and none where there is no trigger', () => {
	const context = contextOf({ triggers: [TRIGGER, SECOND] });
	const second = `https://n8n.test/webhook/${SECOND.webhookId}/callback`;
	const at = (address: string) => recipientAt(context, address).triggerId;
	expect(at(`${second}?token=a`)).toBe('second');
	expect(at(URL_OF_TRIGGER)).toBe('trigger-0');
	expect(at('https://n8n.test/webhook/none/callback')).toBeUndefined();
});

describe('a workflow whose static data do not tell', () => {
	it.each<[string, TestNode[], string]>([
		['the trigger', [TRIGGER], URL_OF_TRIGGER],
		['none that is switched off', [{ ...TRIGGER, disabled: true }], NONE],
		['none of two', [TRIGGER, SECOND], SEVERAL],
		['none where there is none', [], NONE],
	])('has %s where it was published, as a worker runs it', async (_what, triggers, result) => {
		const given = { mode: 'webhook', triggers } as const;
		if (result === URL_OF_TRIGGER) return expect(await found(given)).toBe(result);
		const { message, description } = await refusal(given);
		expect(message).toBe(result);
		expect(description).toContain("'Callback URL'");
	});

	it.each<[string, unknown]>([
		['nothing', undefined],
		['something else', 'x'],
		['the trigger of the workflow it was copied from', { 'trigger-0': 'original' }],
		['another node', { gone: 'workflow' }],
	])('but hold %s has no published trigger for a run by hand', async (_what, stored) => {
		const staticData = { global: { mediaGenerationTriggers: stored } } as IDataObject;
		const { message, description } = await refusal({ staticData });
		expect(message).toBe(NONE);
		expect(description).toContain(
			"Add a Media Generation Trigger and publish the workflow, or paste the URL of a trigger into 'Callback URL'",
		);
	});

	it.each<[string, Given]>([
		['by hand', { mode: 'manual' }],
		['by a retry', { mode: 'retry' }],
		['by another workflow that is run by hand', { mode: 'integrated', rootMode: 'manual' }],
		["by n8n's command line, which runs it as it stands in the editor", { mode: 'cli' }],
	])('and is run %s has no trigger', async (_how, given) => {
		await expect(found(given)).rejects.toThrow(NONE);
	});

	it('has it where a worker runs it by hand', async () => {
		const context = contextOf();
		Object.assign(context.additionalData, {
			hooks: { handlers: { sendChunk: [() => undefined] } },
		});
		expect(triggerOfThisWorkflow(context)).toBe(URL_OF_TRIGGER);
	});

	it('and is called by a run of the published workflow has the trigger', async () => {
		expect(await found({ mode: 'integrated', rootMode: 'trigger' })).toBe(URL_OF_TRIGGER);
	});
});

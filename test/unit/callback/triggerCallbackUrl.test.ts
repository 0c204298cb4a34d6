import type { IDataObject, WorkflowExecuteMode } from 'n8n-workflow';
import nock from '../../nock';

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
const found = async (given?: Given) => await triggerOfThisWorkflow(contextOf(given));
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
		expect(await triggerOfThisWorkflow(context)).toBe(URL_OF_TRIGGER);
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
	/** n8n's answer at the address of a trigger, with the methods that it has a webhook for. */
	const n8n = (methods: string, path = TRIGGER_PATH) =>
		nock('https://n8n.test', { reqheaders: { origin: 'https://n8n.test' } })
			.options(path)
			.reply(204, undefined, { 'Access-Control-Allow-Methods': methods });

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
	])('but hold %s has the trigger that n8n has a webhook for', async (_what, stored) => {
		const staticData = { global: { mediaGenerationTriggers: stored } } as IDataObject;
		n8n('OPTIONS');
		const { message, description } = await refusal({ staticData });
		expect(message).toBe(NONE);
		expect(description).toContain(
			"Add a Media Generation Trigger and publish the workflow, or paste the URL of a trigger into 'Callback URL'",
		);
		n8n('OPTIONS, POST');
		n8n('OPTIONS', '/webhook/another/callback');
		expect(await found({ staticData, triggers: [TRIGGER, SECOND] })).toBe(URL_OF_TRIGGER);
		expect(nock.isDone()).toBe(true);
	});

	it.each<[string, Given]>([
		['by hand', { mode: 'manual' }],
		['by a retry', { mode: 'retry' }],
		['by another workflow that is run by hand', { mode: 'integrated', rootMode: 'manual' }],
		["by n8n's command line, which runs it as it stands in the editor", { mode: 'cli' }],
	])('and is run %s has no trigger that n8n does not know', async (_how, given) => {
		n8n('OPTIONS');
		await expect(found(given)).rejects.toThrow(NONE);
	});

	it('has it for a retry where n8n does not answer', async () => {
		nock('https://n8n.test').options(TRIGGER_PATH).reply(502);
		expect(await found({ mode: 'retry' })).toBe(URL_OF_TRIGGER);
	});

	it('and is called by a run of the published workflow asks nothing', async () => {
		expect(await found({ mode: 'integrated', rootMode: 'trigger' })).toBe(URL_OF_TRIGGER);
	});

	const lost = Object.assign(new Error('No'), { code: 'ECONNREFUSED' });
	it.each<[string, (options: nock.Interceptor) => void]>([
		['somebody else answers', (options) => options.reply(204)],
		['nobody answers', (options) => options.replyWithError(lost)],
	])('says so where %s at the address of its trigger', async (_what, answer) => {
		answer(nock('https://n8n.test').options(TRIGGER_PATH));
		const { message, description } = await refusal();
		expect(message).toBe(
			`It is not known whether the Media Generation Trigger is published: ${URL_OF_TRIGGER}`,
		);
		expect(description).toContain("paste this URL into 'Callback URL'");
	});

	it("says what to allow where n8n's protection refuses its own address", async () => {
		const context = contextOf();
		const refusal = { name: 'SsrfBlockedIpError', ip: '10.0.0.7' };
		jest
			.spyOn(context.helpers, 'httpRequest')
			.mockRejectedValue(Object.assign(new Error('refused'), refusal));
		expect(await caught(async () => await triggerOfThisWorkflow(context))).toMatchObject({
			message: `n8n does not let this node ask for the trigger: ${URL_OF_TRIGGER}`,
			description: expect.stringContaining("refused '10.0.0.7'"),
		});
	});
});

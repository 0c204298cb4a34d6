import type { WorkflowExecuteMode } from 'n8n-workflow';
import nock from '../../nock';

import { triggerOfThisWorkflow } from '../../../nodes/MediaGeneration/callback/triggerCallbackUrl';
import { MediaGenerationTrigger } from '../../../nodes/MediaGeneration/MediaGenerationTrigger.node';
import {
	executeContext,
	hookContext,
	TRIGGER,
	TRIGGER_PATH,
	type TestNode,
} from '../../workflow/engine';
import { caught } from '../support';

const URL_OF_TRIGGER = `https://n8n.test${TRIGGER_PATH}`;
const SECOND: TestNode = { ...TRIGGER, id: 'second', webhookId: 'another' };

interface Given {
	mode?: WorkflowExecuteMode;
	triggers?: TestNode[];
	signal?: AbortSignal;
}

const contextOf = ({ mode = 'manual', triggers = [TRIGGER], signal }: Given = {}) => {
	const context = executeContext({ triggers }, signal);
	context.getMode = () => mode;
	return context;
};

/** What an action node finds. */
const found = async (given?: Given) => await triggerOfThisWorkflow(contextOf(given));

const NONE = 'No active Media Generation Trigger was found in this workflow';
const SEVERAL = 'This workflow has more than one Media Generation Trigger';

it("a trigger is not published where n8n's engine v2 runs its workflow", async () => {
	const { default: hooks } = new MediaGenerationTrigger().webhookMethods;
	const { hook } = hookContext({ node: TRIGGER, settings: { engineType: 'v2' } });
	await expect(async () => await hooks.checkExists.call(hook)).rejects.toThrow(
		'does not work with the engine v2',
	);
});

describe('a workflow', () => {
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
	])('has %s where it was published', async (_what, triggers, result) => {
		const came = await found({ mode: 'webhook', triggers }).catch(({ message }: Error) => message);
		expect(came).toBe(result);
	});

	it('that is run by hand has the trigger that n8n has a webhook for', async () => {
		n8n('OPTIONS');
		expect(await caught(found)).toMatchObject({
			message: NONE,
			description: expect.stringContaining(
				"Add a Media Generation Trigger and publish the workflow, or paste the URL of a trigger into 'Callback URL'",
			),
		});
		n8n('OPTIONS, POST');
		n8n('OPTIONS', '/webhook/another/callback');
		expect(await found({ triggers: [TRIGGER, SECOND] })).toBe(URL_OF_TRIGGER);
		expect(nock.isDone()).toBe(true);
	});

	it.each(['manual', 'retry'] as const)(
		'that is run by hand, or may be (%s), has no trigger that n8n does not know',
		async (mode) => {
			n8n('OPTIONS');
			await expect(found({ mode })).rejects.toThrow(NONE);
		},
	);

	it('that a run by hand calls has no trigger that n8n does not know', async () => {
		n8n('OPTIONS');
		const context = contextOf({ mode: 'integrated' });
		Object.assign(context.additionalData, { rootExecutionMode: 'manual' });
		await expect(triggerOfThisWorkflow(context)).rejects.toThrow(NONE);
	});

	it('that is retried has the trigger where n8n does not answer, since it may be of any run', async () => {
		nock('https://n8n.test').options(TRIGGER_PATH).reply(502);
		expect(await found({ mode: 'retry' })).toBe(URL_OF_TRIGGER);
	});

	it.each<[string, (options: nock.Interceptor) => void]>([
		['somebody else answers', (options) => options.reply(204)],
		[
			'nobody answers',
			(options) => options.replyWithError(Object.assign(new Error('No'), { code: 'ECONNREFUSED' })),
		],
	])('says so where %s at the address of its trigger', async (_what, answer) => {
		answer(nock('https://n8n.test').options(TRIGGER_PATH));
		expect(await caught(found)).toMatchObject({
			message: `It is not known whether the Media Generation Trigger is published: ${URL_OF_TRIGGER}`,
			description: expect.stringContaining("paste this URL into 'Callback URL'"),
		});
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

	it('is not asked after a stop', async () => {
		await expect(found({ signal: AbortSignal.abort() })).rejects.toThrow(
			'The execution was stopped',
		);
	});
});

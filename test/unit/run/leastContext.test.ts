import type { IDataObject, IExecuteFunctions, IWebhookFunctions } from 'n8n-workflow';

import { callbackToken } from '../../../nodes/MediaGeneration/callback/callbackToken';
import { MediaGeneration } from '../../../nodes/MediaGeneration/MediaGeneration.node';
import { MediaGenerationCredits } from '../../../nodes/MediaGeneration/MediaGenerationCredits.node';
import { MediaGenerationTrigger } from '../../../nodes/MediaGeneration/MediaGenerationTrigger.node';
import { API_KEY, CREDENTIAL, TRIGGER_PATH } from '../../workflow/engine';
import { passTime, virtualTime } from '../../workflow/time';

const RECORD = { taskId: 'task-1', state: 'SUCCESS', resultUrls: ['https://m.example.com/1.png'] };

/** What the service answers, as n8n's helper gives it; a function is called, and may throw. */
type Call = (request: { method: string; url: string }) => unknown;

const whole = (body: unknown, statusCode = 200) => ({ statusCode, headers: {}, body });
const usual: Call = ({ method, url }) => {
	if (url.endsWith('/api/credits')) return whole({ balance: 12 });
	return whole(method === 'POST' ? { taskId: 'task-1' } : RECORD);
};

/** A context with what each n8n documents, and nothing else. */
function leastContext(parameters: IDataObject, call: Call = usual) {
	const logger = { info: jest.fn(), warn: jest.fn(), error: jest.fn(), debug: jest.fn() };
	const node: IDataObject = { id: '1', name: 'Media', typeVersion: 1, position: [0, 0] };
	return {
		getInputData: () => [{ json: {} }],
		getNodeParameter: (name: string, ...others: unknown[]) => {
			// A webhook has no item.
			const fallback = typeof others[0] === 'number' ? others[1] : others[0];
			return parameters[name] ?? fallback;
		},
		getNode: () => node,
		getCredentials: async () => await Promise.resolve({ ...CREDENTIAL }),
		continueOnFail: () => false,
		helpers: {
			httpRequestWithAuthentication: jest.fn(async (_type: string, request: never) =>
				Promise.resolve(call(request)),
			),
			httpRequest: jest.fn(async () => Promise.resolve(whole(Buffer.from('picture')))),
			returnJsonArray: (json: IDataObject[]) => json.map((each) => ({ json: each })),
			prepareBinaryData: async (data: Buffer) =>
				await Promise.resolve({ data: data.toString(), mimeType: 'image/png' }),
		},
		logger,
		getWorkflow: () => ({ id: 'w', name: 'W', active: true }),
		getMode: () => 'manual',
		getExecutionId: () => '7',
	};
}

type Context = ReturnType<typeof leastContext>;

const GET = { resource: 'task', operation: 'get', taskId: 'task-1' };
const WAIT = { ...GET, operation: 'wait' };
const IMAGE = { resource: 'image', operation: 'generate', model: 'a/b', prompt: 'A lighthouse' };
const RETURN = { ...IMAGE, completion: 'return' };

async function run(context: Partial<Context>, Node = MediaGeneration): Promise<IDataObject[]> {
	const [items = []] = await new Node().execute.call(context as unknown as IExecuteFunctions);
	return items.map(({ json, binary }) => ({ ...json, ...(binary && { binary }) }));
}

it.each<[string, IDataObject, IDataObject]>([
	['reads a task', GET, RECORD],
	['waits for a task', WAIT, RECORD],
	['creates a task and does not wait', RETURN, { taskId: 'task-1', state: 'PENDING' }],
	[
		'creates the model of a resource locator',
		{ ...RETURN, model: { __rl: true, mode: 'list', value: 'a/b' } },
		{ model: 'a/b' },
	],
	[
		'creates a video from the address of a picture where the choice is left out',
		{ ...RETURN, resource: 'video', imageUrl: 'https://m.example.com/0.png' },
		{ input: { prompt: 'A lighthouse', image_url: 'https://m.example.com/0.png' } },
	],
	[
		'downloads a result that n8n has read to its end',
		{ ...GET, downloadResults: true },
		{ binary: { data: { data: 'picture' } } },
	],
])('the least context %s', async (_what, parameters, json) => {
	expect(await run(leastContext(parameters))).toMatchObject([json]);
});

it.each(['getMode', 'getExecutionId'] as const)('%s may be missing, too', async (name) => {
	const { [name]: _, ...context } = leastContext(RETURN);
	expect(await run(context)).toMatchObject([{ taskId: 'task-1' }]);
});

describe('a create', () => {
	virtualTime();

	it('is waited for where nobody has chosen how it goes on', async () => {
		const pending = { ...RECORD, state: 'PENDING' };
		const context = leastContext({ ...IMAGE, options: { timeout: 9 } }, ({ method }) =>
			whole(method === 'POST' ? { taskId: 'task-1' } : pending),
		);
		const message = 'The task is not finished after 9 s';
		await expect(passTime(run(context))).rejects.toThrow(message);
	});
});

it('reads the balance', async () => {
	expect(await run(leastContext({}), MediaGenerationCredits as never)).toMatchObject([
		{ balance: 12 },
	]);
});

it('a logger that fails costs no task its id', async () => {
	const context = leastContext(RETURN);
	Object.assign(context, { logger: {} });
	expect(await run(context)).toMatchObject([{ taskId: 'task-1' }]);
});

describe('an answer of the service', () => {
	it.each<[string, unknown]>([
		['without headers', { statusCode: 200, body: RECORD }],
		['that is the body alone', RECORD],
		['that is the text of the body alone', JSON.stringify(RECORD)],
		['with its bytes', { statusCode: 200, body: Buffer.from(JSON.stringify(RECORD)) }],
	])('%s is read', async (_what, answer) => {
		expect(await run(leastContext(GET, () => answer))).toMatchObject([RECORD]);
	});

	const failure = (more: object) => Object.assign(new Error('Request failed'), more);
	const refusal = { error: 'Bad seed' };
	const TOLD = 'The service did not accept the request (HTTP 422): Bad seed';
	it.each<[string, object, string]>([
		['of axios', { response: { status: 422, data: refusal, headers: {} } }, TOLD],
		['of n8n', { httpCode: '422', cause: { response: { status: 422, data: refusal } } }, TOLD],
		['with a body', { statusCode: 422, response: { body: JSON.stringify(refusal) } }, TOLD],
		['with a status alone', { httpCode: '422' }, 'did not accept the request (HTTP 422)'],
		['with a 2xx', { response: { status: 200, data: {} } }, 'not known whether the task was'],
		['with a code', { httpCode: 'ECONNRESET' }, 'not known whether the task was created'],
	])('that is thrown, as an error %s, means what it says', async (_what, more, message) => {
		const context = leastContext(RETURN, () => {
			throw failure(more);
		});
		await expect(run(context)).rejects.toThrow(message);
		expect(context.helpers.httpRequestWithAuthentication).toHaveBeenCalledTimes(1);
	});
});

describe('the webhook of the trigger', () => {
	const TOKEN = callbackToken(TRIGGER_PATH, API_KEY);

	function deliver(response: object, { token = TOKEN, mode = 'manual', call = usual } = {}) {
		const context = {
			...leastContext({}, call),
			getMode: () => mode,
			getRequestObject: () => ({ url: `${TRIGGER_PATH}?token=${token}` }),
			getResponseObject: () => response,
			getQueryData: () => ({ token }),
			getBodyData: () => ({ taskId: 'task-1' }),
			getNodeWebhookUrl: () => undefined,
		};
		return new MediaGenerationTrigger().webhook.call(context as unknown as IWebhookFunctions);
	}

	it('starts the workflow', async () => {
		const { workflowData } = await deliver({});
		expect(workflowData).toMatchObject([[{ json: { taskId: 'task-1', state: 'SUCCESS' } }]]);
	});

	it('takes a callback for answered whose response does not show it', async () => {
		await deliver({}, { mode: 'trigger' });
		const response = { status: jest.fn().mockReturnThis(), json: jest.fn() };
		await deliver(response, { mode: 'trigger' });
		expect(response.json).toHaveBeenCalledWith({ accepted: false, reason: 'duplicate' });
	});

	it('asks for the callback again by the response of Node.js', async () => {
		const json = jest.fn();
		const response = { setHeader: jest.fn(), status: jest.fn().mockReturnThis(), json };
		await deliver(response, { call: () => whole({ ...RECORD, state: 'PENDING' }) });
		expect(response.setHeader).toHaveBeenCalledWith('Retry-After', '5');
		expect(json).toHaveBeenCalledTimes(1);
	});

	it.each([
		[true, 1],
		[false, 0],
	])('starts it once where n8n only tells what is new: %j', async (isNew, starts) => {
		const context = leastContext({});
		const checkProcessedAndRecord = async (entries: string[]) =>
			await Promise.resolve({ new: isNew ? entries : [], processed: [] });
		Object.assign(context.helpers, { checkProcessedAndRecord });
		const [[item] = []] = (await deliver({})).workflowData ?? [];
		Object.assign(context, { getInputData: () => [item], getMode: () => 'trigger' });
		expect(await run(context, MediaGenerationTrigger as never)).toHaveLength(starts);
	});
});

import type { Answer } from '../../../nodes/MediaGeneration/service/boundedAnswer';
import { type HttpRequest, ServiceClient } from '../../../nodes/MediaGeneration/service/client';
import type { ServiceError } from '../../../nodes/MediaGeneration/service/serviceError';
import { caught, visibleText } from '../support';

const BASE_URL = 'https://api.example.com/v1';
const KEY = 'sk-live-secret';
const TASK = { model: 'vendor/model', input: { prompt: 'A lighthouse' } };

/** A client whose every request is answered alike, and the requests that it sent. */
function clientThatGets(answer: Partial<Answer>, key = KEY) {
	const sent: HttpRequest[] = [];
	const client = new ServiceClient(
		async (request) => {
			sent.push(request);
			return await Promise.resolve({ statusCode: 200, headers: {}, body: '', ...answer });
		},
		BASE_URL,
		[key],
	);
	return { client, sent };
}

const json = (body: unknown, statusCode = 200) => ({ statusCode, body: JSON.stringify(body) });

const errorOf = async (answer: Partial<Answer>, key?: string) =>
	(await caught(
		async () => await clientThatGets(answer, key).client.readTask('task-1'),
	)) as ServiceError;

describe('creating a task', () => {
	it('is one POST with the model, the input, and the callback address where there is one', async () => {
		const { client, sent } = clientThatGets(json({ taskId: 'task-1' }));
		const timeoutMs = expect.closeTo(120_000, -1) as number;
		const post = { method: 'POST', url: `${BASE_URL}/api/generate`, timeoutMs };
		const webhookUrl = 'https://n8n.example.com/webhook/x';
		await client.createTask(TASK);
		await client.createTask({ ...TASK, webhookUrl });
		expect(sent).toEqual([
			{ ...post, body: JSON.stringify(TASK) },
			{ ...post, body: JSON.stringify({ ...TASK, webhook_url: webhookUrl }) },
		]);
	});

	it('names no callback address that the service cannot reach', async () => {
		const { client, sent } = clientThatGets(json({ taskId: 'task-1' }));
		for (const host of ['localhost:5678', '192.168.1.7', 'n8n.local']) {
			await client.createTask({ ...TASK, webhookUrl: `http://${host}/webhook/x/callback` });
		}
		expect(sent.map(({ body }) => body)).toEqual(Array(3).fill(JSON.stringify(TASK)));
	});

	it('has more time with a file of 30 MB in it: it takes five minutes on a slow line', async () => {
		const { client, sent } = clientThatGets(json({ taskId: 'task-1' }));
		await client.createTask({ model: 'vendor/model', input: { frames: ['x'.repeat(30_000_000)] } });
		expect(sent[0]?.timeoutMs).toBe(120_000 + 300_000);
	});

	it('brings the task id and the answer as received', async () => {
		const body = { code: 200, data: { taskId: 'task-1' } };
		const { client } = clientThatGets(json(body, 201));
		expect(await client.createTask(TASK)).toEqual({ taskId: 'task-1', record: body });
	});

	it('keeps a number exact that JavaScript cannot hold', async () => {
		const { client } = clientThatGets({ body: '{"taskId": 1234567890123456789, "at": 17}' });
		const record = { taskId: '1234567890123456789', at: 17 };
		expect(await client.createTask(TASK)).toEqual({ taskId: record.taskId, record });
	});

	it.each<[object, string]>([
		[{ code: 402, msg: 'Top up first' }, 'not enough credits (code 402): Top'],
		[{ success: false, msg: 'Bad luck' }, 'The service named no task id: Bad luck'],
		[{ code: 500, data: null, message: 'Oops' }, 'The service named no task id: Oops'],
		[{ code: 200, message: 'ok' }, 'The service named no task id'],
	])('answered 200 with %j is named by the words of the service: %s', async (body, words) => {
		const { client } = clientThatGets(json(body));
		const { message } = await caught(async () => await client.createTask(TASK));
		expect(message).toContain(words);
		expect(message).not.toMatch(/accepted|: ok$/);
	});

	const request = { prompt: 'A lighthouse "at dusk". '.repeat(100) };
	const job = { created: '2026-01-01', queue: 'x'.repeat(200), uuid: 'paid-task-7' };
	const warning =
		'<br />\n<b>Deprecated</b>: Optional parameter $a in <b>/srv/queue/create.php</b><br />\n';
	const location = '/api/generate/paid-task-7';
	const inHeader = (body: string) => ({ statusCode: 201, headers: { location }, body });
	it.each([
		[
			'JSON behind a warning',
			{ body: `${warning}{"taskId":"paid-task-7"}` },
			'not JSON',
			'paid-task-7',
		],
		['an id where nobody looks', json({ result: { job } }), 'named no task id', 'paid-task-7'],
		['an id behind a prompt', json({ request, result: { job } }), 'named no', 'paid-task-7'],
		['a list', json(['task-1']), 'named no task id', 'task-1'],
		['a web page', { body: '<p>Hi</p>' }, 'something that is not JSON', 'begins: <p>Hi</p>'],
		['nothing', { body: '' }, 'something that is not JSON', 'was empty'],
		['an id in the header', inHeader('{}'), 'named no', `names ${location}.`],
		['empty, with an id in the header', inHeader(''), 'not JSON', `names ${location}.`],
	])('ends in an error that shows what came where it is %s', async (_what, answer, what, shown) => {
		const { client } = clientThatGets(answer);
		const error = await caught(async () => await client.createTask(TASK));
		expect(error).toMatchObject({ kind: 'unexpectedAnswer' });
		expect(error.message).toContain(what);
		const { description = '' } = error as ServiceError;
		expect(description).toContain("'Base URL' of the credential");
		expect(description).toContain(shown);
	});

	const lateTrouble = { taskId: 'paid-task-7', error: { message: 'No callback was registered' } };
	it.each([
		['HTTP 500', json(lateTrouble, 500), 'paid-task-7'],
		['HTTP 504', json({ data: { task_id: 'paid-task-7' } }, 504), 'paid-task-7'],
		['HTTP 303', { statusCode: 303, headers: { location } }, location],
	])('shows the id in an answer of %s: the task may exist', async (_what, answer, shown) => {
		const { client } = clientThatGets(answer);
		const error = await caught(async () => await client.createTask(TASK));
		expect(visibleText(error)).toContain(`The answer names ${shown}.`);
	});
});

describe('reading', () => {
	it('a task is a GET of that task, and brings the record with the id it asked for', async () => {
		const { client, sent } = clientThatGets(
			json({ state: 'success', resultUrls: ['https://m/1'] }),
		);
		const task = { taskId: 'task-1', state: 'SUCCESS', resultUrls: ['https://m/1'] };
		expect(await client.readTask('task-1')).toMatchObject(task);
		const url = `${BASE_URL}/api/generate/task-1`;
		expect(sent).toEqual([{ method: 'GET', url, timeoutMs: 30_000 }]);
	});

	it('the credits is a GET whose answer is handed on as it is', async () => {
		const { client, sent } = clientThatGets(json({ anything: [1] }));
		expect(await client.readCredits()).toEqual({ anything: [1] });
		expect(sent).toEqual([{ method: 'GET', url: `${BASE_URL}/api/credits`, timeoutMs: 30_000 }]);
	});

	const CLIMBING = ['../credits', '..%2fcredits', 'a/../../credits', 'a\\..\\b', '...'];
	const ELSEWHERE = ['//evil.example.com', 'https://evil.example.com', '@evil.example.com'];
	it.each([...CLIMBING, ...ELSEWHERE, 'a?x=1', 'a#b', 'ü 🙂'])(
		'the id %j reaches no other address',
		async (id) => {
			const { client, sent } = clientThatGets(json({ state: 'PENDING' }));
			await client.readTask(id);
			const { href, pathname } = new URL(sent[0]?.url ?? '');
			expect(href).toBe(`https://api.example.com${pathname}`);
			const [before, segment = '', ...more] = pathname.split('/v1/api/generate/');
			expect([before, more]).toEqual(['', []]);
			expect(segment).not.toContain('/');
			expect(decodeURIComponent(segment)).toBe(id);
		},
	);
});

describe('an answer with an error status', () => {
	it.each([
		[400, 'rejected', 'did not accept the request'],
		[401, 'unauthorized', 'refused the API key'],
		[402, 'noCredits', 'not enough credits'],
		[403, 'forbidden', 'does not allow this'],
		[404, 'notFound', 'knows no such task for this account'],
		[410, 'notFound', 'knows no such task for this account'],
		[429, 'tooManyRequests', 'too many tasks or requests'],
		[500, 'serviceDown', 'not working at the moment'],
		[503, 'serviceDown', 'not working at the moment'],
		[302, 'redirected', 'redirects to another address'],
	])('HTTP %d is of the kind %s', async (statusCode, kind, message) => {
		const error = await errorOf({ statusCode });
		expect(error).toMatchObject({ kind, statusCode });
		expect(error.message).toMatch(new RegExp(`${message}.*\\(HTTP ${statusCode}\\)`));
		expect(error.description).toMatch(/\w{3}/);
	});

	it.each([400, 402, 403, 429])(
		'%d for a read or for the credits speaks of no order, no item and no other node',
		async (statusCode) => {
			const ofCredits = async () => await clientThatGets({ statusCode }).client.readCredits();
			const ofRead = await errorOf({ statusCode });
			for (const { message, description } of [ofRead, (await caught(ofCredits)) as ServiceError]) {
				const words = /prompt|item|this task|Credits node|in the options/;
				expect(message + description).not.toMatch(words);
			}
			if (statusCode === 400) expect(ofRead.description).toContain('Check the task id');
		},
	);

	it('that redirects names the address to enter', async () => {
		const location = 'https://www.example.com/api/generate/task-1';
		const { description } = await errorOf({ statusCode: 301, headers: { location } });
		expect(description).toContain(`The answer names ${location}.`);
	});

	const unit = 'task' as const;
	const MODELS = ['vendor/painter-2', 'vendor/clips'].map((id) => ({ id, priceUsd: 0, unit }));
	const refusedOrder = async (model: string, answer: Partial<Answer>, models = MODELS) => {
		const transport = async () => ({ statusCode: 200, headers: {}, body: '', ...answer });
		const client = new ServiceClient(transport, BASE_URL, [KEY], undefined, models);
		return (await caught(async () => await client.createTask({ ...TASK, model }))) as ServiceError;
	};
	const noModel = { error: { message: 'No such model.' } };
	const NEAREST =
		/^The model 'vendor\/paintre-2' is not in the credential, under 'Models': choose a model from the list in 'Model'\.$/;
	const CHECK_MODEL = /^Check the model 'vendor\/clips' of this item\..*'Base URL'/;
	const unsafe = { error: { message: 'Rejected by the safety system' } };
	const page = { statusCode: 404, body: '<h1>Not found</h1>' };

	it.each<
		[string, string, Partial<Answer>, message: string, description: RegExp, models?: typeof MODELS]
	>([
		['404', 'vendor/paintre-2', json(noModel, 404), 'No such model (HTTP 404)', NEAREST],
		['422', 'vendor/paintre-2', json(noModel, 422), 'No such model (HTTP 422)', NEAREST],
		['404 of a model there is', 'vendor/clips', json(noModel, 404), 'No such model', CHECK_MODEL],
		['404 without a list', 'vendor/clips', json(noModel, 404), 'No such model', CHECK_MODEL, []],
		["a proxy's 404", 'vendor/x', page, 'no such address', /^Check the 'Base URL'/],
		['400 for safety', 'vendor/clips', json(unsafe, 400), 'safety', /, or change the prompt/],
		['403 for safety', 'vendor/clips', json(unsafe, 403), 'safety', /, or change the prompt/],
		['422 for safety', 'vendor/clips', json(unsafe, 422), 'safety', /, or change the prompt/],
	])(
		'%s for an order says what to do',
		async (_what, model, answer, words, wayOut, models = MODELS) => {
			const { message, description } = await refusedOrder(model, answer, models);
			expect(message).toContain(words);
			expect(description).toMatch(wayOut);
		},
	);

	it('with other words says nothing of the prompt', async () => {
		const other = json({ error: { message: 'The seed is too large' } }, 400);
		const { description } = await refusedOrder('vendor/clips', other);
		expect(description).not.toContain('or change the prompt');
	});

	it('404 without a task points at the base URL', async () => {
		const { client } = clientThatGets({ statusCode: 404 });
		const error = (await caught(async () => await client.readCredits())) as ServiceError;
		expect(error.message).toContain('no such address');
		expect(error.description).toContain("'Base URL'");
	});

	it.each([
		['the message of', json({ error: { message: 'Prompt too long' } }, 400), ': Prompt too long'],
		['a plain text as', { statusCode: 400, body: 'Bad model\n' }, ': Bad model'],
		['no page of', { statusCode: 400, body: '\n <!doctype html>' }, ''],
		['nothing of', { statusCode: 400, body: '' }, ''],
	])('shows %s what the service said', async (_what, answer, said) => {
		const { message } = await errorOf(answer);
		expect(message).toBe(`The service did not accept the request (HTTP 400)${said}`);
	});
});

describe('an answer to a read', () => {
	it.each<[isNotYet: boolean, Partial<Answer>]>([
		[true, { body: '' }],
		[true, { statusCode: 202 }],
		[true, { statusCode: 204 }],
		[true, json({ code: 500, data: null })],
		[true, json({ taskId: 'task-1' })],
		[false, { body: '<html>' }],
		[false, { statusCode: 503 }],
		[false, { body: '{"state": "SUC' }],
	])('without a state means "not yet" (%j): %j', async (isNotYet, answer) => {
		const { kind } = await errorOf(answer);
		expect(kind === 'unusableRecord').toBe(isNotYet);
	});

	it('has a hint where something before the service may speak', async () => {
		const { description } = await errorOf({ statusCode: 403, body: '<html>Blocked</html>' });
		expect(description).toContain('firewall or a proxy before the service');
	});
});

describe('the API key', () => {
	const refused = (key: string) => json({ message: `Key ${key} is not valid` }, 401);
	const slashed = 'sk-live-a/b+c=';
	const encoded = encodeURIComponent(slashed);
	const escaped = { statusCode: 401, body: refused(slashed).body.replaceAll('/', '\\/') };

	it.each<[string, Partial<Answer>, string]>([
		['in a JSON message', refused(KEY), KEY],
		['in a web page with status 200', { body: `<html>${KEY}</html>` }, KEY],
		['twice', { statusCode: 400, body: `${KEY} ${KEY}` }, KEY],
		['as short as a word', refused('hush'), 'hush'],
		['as JSON writes it', refused('sk-live-"quoted"\\'), 'sk-live-"quoted"\\'],
		['as JSON may write it', escaped, slashed],
		['in an address', json({ error: `See https://x.com/?key=${encoded}` }, 401), slashed],
	])('is in no error where the service echoes it %s', async (_where, answer, key) => {
		const text = visibleText(await errorOf(answer, key));
		for (const written of [key, encodeURIComponent(key)]) expect(text).not.toContain(written);
	});

	it('is cut out of a message, and of the record of a task, and the rest stays', async () => {
		expect((await errorOf(refused(KEY))).message).toContain('Key *** is not valid');
		const { client } = clientThatGets(json({ state: 'PENDING', account: { key: KEY } }));
		expect(await client.readTask('t')).toMatchObject({ record: { account: { key: '***' } } });
	});

	it('that is as short as a word breaks no result URL that holds the word', async () => {
		const record = { state: 'SUCCESS', resultUrls: ['https://test.example.com/1.png'] };
		const { client } = clientThatGets(json(record), 'test');
		expect(await client.readTask('t')).toMatchObject(record);
	});
});

describe('the token of a callback address', () => {
	const token = 'a1'.repeat(32);
	const webhookUrl = `https://n8n.example.com/hooks/x/callback?token=${token}`;
	const task = { ...TASK, webhookUrl };

	it('is in no create response, no record and no error that repeats it', async () => {
		const said = { taskId: 'task-1', state: 'PENDING', webhook_url: webhookUrl, note: token };
		const { client } = clientThatGets(json(said));
		const answers = [await client.createTask(task), await client.readTask('task-1')];
		const refused = clientThatGets(json({ message: `Cannot reach ${webhookUrl}` }, 400)).client;
		const error = await caught(async () => await refused.createTask(task));
		expect(error.message).toContain(`Cannot reach ${webhookUrl.replace(token, '***')}`);
		expect(JSON.stringify(answers) + visibleText(error)).not.toContain(token);
	});
});

import type { IDataObject } from 'n8n-workflow';
import nock from '../../nock';

import { callbackToken } from '../../../nodes/MediaGeneration/callback/callbackToken';
import {
	resumeCallbackUrl,
	resumeUrl,
	RunProgress,
} from '../../../nodes/MediaGeneration/suspend/resumeWebhook';
import { API_KEY, CREDENTIAL, SERVICE } from '../../workflow/engine';
import { callBack } from '../../workflow/subExecution';
import { time, virtualTime } from '../../workflow/time';
import { outcome } from '../callback/webhook';
import { FakeClock } from '../support';
import { allOf, contextOf, indexes, service } from './checks';

const OWN = 'http://127.0.0.1:5678';
const PUBLIC = 'https://n8n.test';
const CHECKER_PATH = '/webhook-waiting/13/media-generation';
const URL_OF_CHECKER = `${PUBLIC}${CHECKER_PATH}?signature=of-n8n`;

interface Given {
	/** The tasks that the execution waits for. */
	taskIds?: string[];
	token?: string | null;
	/** What the node noted when it was suspended; null where it noted nothing. */
	check?: IDataObject | null;
	operation?: string;
	/** Whether n8n's expressions, which tell what is stored, do not work. */
	isUnreadable?: boolean;
	/** The address at which n8n has received the callback. */
	localAddress?: string;
}

/** Delivers the callback of the first task to a suspended execution as n8n hands it on. */
function resume({
	taskIds = ['task-0'],
	token = callbackToken('/webhook-waiting/12/media-generation', API_KEY),
	check = { version: 1, url: URL_OF_CHECKER, taskIds },
	operation = 'generate',
	isUnreadable = false,
	localAddress = '::ffff:127.0.0.1',
}: Given = {}) {
	const query = token === null ? {} : { signature: 'of-n8n', token };
	const kept = check === null ? {} : { check };
	const given = { operation, kept, executionId: '12' };
	const path = '/webhook-waiting/12/media-generation?signature=of-n8n&token=…';
	const { context, response, admit } = callBack(path, query, 'task-0', given);
	Object.assign(context.getRequestObject().socket, { localAddress });
	const warned = jest.spyOn(context.logger, 'warn');
	const logged = jest.spyOn(context.logger, 'info').mockReset();
	if (isUnreadable) {
		jest.spyOn(context, 'evaluateExpression').mockImplementation(() => {
			throw new Error('Isolate was disposed during execution due to memory limit');
		});
	}
	return { result: admit(), response, warned, logged };
}

const TWO = { taskIds: ['task-0', 'task-1'] };
const second = (status: number, state?: string) =>
	nock(SERVICE).get('/api/generate/task-1').reply(status, { taskId: 'task-1', state });

/** What n8n answers if the sub-execution goes on. */
const WOKEN = { accepted: true };

/** The address at which the sub-execution is told to check. */
const checkerAt = (origin: string) =>
	nock(origin)
		.post(CHECKER_PATH, { taskId: 'task-0' })
		.query({ signature: 'of-n8n', token: callbackToken(CHECKER_PATH, API_KEY) });

describe('a callback to a suspended run', () => {
	const answered = (resumed: boolean) => ({ status: 200, body: { accepted: true, resumed } });
	const LATER = answered(false);
	const COME_AGAIN = { status: 503, retryAfter: '5' };
	const running = { message: 'The execution "13" is running already.' };
	const resuming = { message: 'Execution is already being resumed by another process' };
	const ended = { message: 'The execution "13" has finished already.' };
	type Reply = [status: number, body?: object];

	it.each<[string, own: Reply | 'lost', byAddress: Reply | undefined, object]>([
		['has the sub-execution check at once, by its socket', [200, WOKEN], undefined, answered(true)],
		['goes by the public address where the socket is none', 'lost', [200, WOKEN], answered(true)],
		['is not woken by web pages at its addresses', [200], [200], LATER],
		['costs a while where the sub-execution cannot be told', [409], [404], LATER],
		['has done its part where that has ended', [409, ended], undefined, answered(true)],
		['is to come again where that is checking', [409, running], undefined, COME_AGAIN],
		['is to come again where that is being resumed', [500, resuming], undefined, COME_AGAIN],
	])('%s', async (_what, own, byAddress, expected) => {
		if (own === 'lost') checkerAt(OWN).replyWithError('wrong version number');
		else checkerAt(OWN).reply(own[0], own[1] ?? {});
		if (byAddress) checkerAt(PUBLIC).reply(byAddress[0], byAddress[1] ?? {});
		const call = resume();
		expect(await outcome(call)).toMatchObject(expected);
		expect(nock.isDone()).toBe(true);
		const said = expect.stringContaining('the execution goes on at the next check');
		if (expected === LATER) expect(call.logged).toHaveBeenLastCalledWith(said);
		else expect(call.logged).not.toHaveBeenCalledWith(said);
	});

	describe('to which n8n has no answer for itself', () => {
		virtualTime();

		it('is to come again, and is told so within 10 s', async () => {
			for (const place of [OWN, PUBLIC]) {
				checkerAt(place).reply(async () => await new Promise(() => {}));
			}
			let came: unknown;
			void outcome(resume()).then((answer) => (came = answer));
			const startedAt = Date.now();
			while (!came && Date.now() - startedAt < 60_000) await time.pass(100);
			expect(Date.now() - startedAt).toBeLessThan(10_000);
			expect(came).toMatchObject(COME_AGAIN);
		});
	});

	it('goes by the public address where the socket has an address that no URL can have', async () => {
		checkerAt(PUBLIC).reply(200, WOKEN);
		expect(await outcome(resume({ localAddress: 'fe80::1%eth0' }))).toMatchObject(answered(true));
	});

	it('tells nobody where the address of the sub-execution is not known', async () => {
		const check = { version: 1, url: '', taskIds: ['task-0'] };
		const call = resume({ check });
		expect(await outcome(call)).toMatchObject(LATER);
		expect(call.logged).not.toHaveBeenCalled();
	});

	it('waits for the others', async () => {
		second(200, 'PENDING');
		expect(await outcome(resume(TWO))).toMatchObject(LATER);
	});

	it('makes up for those that were lost', async () => {
		second(200, 'SUCCESS');
		const told = checkerAt(OWN).reply(200, WOKEN);
		await outcome(resume(TWO));
		expect(told.isDone()).toBe(true);
	});

	it('is to come again where another task cannot be read', async () => {
		second(500);
		const body = { message: 'A task could not be read' };
		expect(await outcome(resume(TWO))).toMatchObject({ status: 503, body });
	});

	it('is to come again where n8n cannot tell what is stored: what is thrown would resume the run with nothing', async () => {
		expect(await outcome(resume({ isUnreadable: true }))).toMatchObject(COME_AGAIN);
	});

	it('is to come again where a newer version of this package suspended the run', async () => {
		const call = resume({ check: { version: 2, url: '', taskIds: ['task-0'] } });
		expect(await outcome(call)).toMatchObject(COME_AGAIN);
		const warning = expect.stringContaining('another version of this package');
		expect(call.warned).toHaveBeenCalledWith(warning);
	});

	it.each<[string, Given, number]>([
		['of a task that it does not wait for, or no more', { taskIds: ['task-1'] }, 404],
		['where nothing checks for this execution', { check: null }, 404],
		['without a token', { token: null }, 401],
	])('%s is refused', async (_what, given, status) => {
		expect(await outcome(resume(given))).toMatchObject({ status });
	});
});

describe('a call of the sub-execution', () => {
	const CHECKER = { check: null, operation: 'check' };

	it('has it check', async () => {
		expect(await resume(CHECKER).result).toEqual({
			workflowData: [[{ json: { woken: true } }]],
			webhookResponse: { accepted: true },
		});
	});
});

describe('what a process hears of a run', () => {
	beforeEach(() => void new FakeClock());

	const progress = (count: number) =>
		new RunProgress({ url: '', taskIds: indexes(count).map((index) => `task-${index}`) });

	it('of one task is enough, without a read', async () => {
		const { read, reads } = service({});
		expect(await progress(1).isComplete('task-0', read)).toBe(true);
		expect(reads).toEqual([]);
	});

	it('is checked until one task is found pending: that is proof that the run is not finished', async () => {
		const { read, reads } = service({ ...allOf(500, 'SUCCESS'), 'task-499': 'PENDING' });
		const run = progress(500);
		await run.isComplete('task-0', read);
		// 1, 2, 4, … at once, up to the one that is pending.
		expect(new Set(reads).size).toBe(reads.length);
		expect(await run.isComplete('task-499', read)).toBe(true);
	});

	it('500 times costs fewer reads than there are tasks', async () => {
		const clock = new FakeClock();
		const { read, reads, states } = service(allOf(500, 'PENDING'));
		const run = progress(500);
		let complete = 0;
		for (const taskId of Object.keys(states)) {
			states[taskId] = 'SUCCESS';
			clock.pass(100);
			if (await run.isComplete(taskId, read)) complete++;
		}
		expect(complete).toBe(1);
		expect(reads.length).toBeLessThanOrEqual(500);
	});

	it('at the same time shares a check', async () => {
		const { read, reads } = service({ ...allOf(4, 'PENDING'), ...allOf(2, 'SUCCESS') });
		const run = progress(4);
		const told = ['task-0', 'task-1', 'task-0', 'task-1'];
		const answers = await Promise.all(told.map(async (id) => await run.isComplete(id, read)));
		expect(answers).toEqual([false, false, false, false]);
		expect(reads.length).toBeLessThanOrEqual(2);
	});

	it('has a pending task read every two seconds at most', async () => {
		const clock = new FakeClock();
		const { read, reads } = service(allOf(2, 'PENDING'));
		const run = progress(2);
		for (let count = 0; count < 10; count++) await run.isComplete('task-0', read);
		expect(reads).toHaveLength(10);
		expect(clock.now()).toBeGreaterThanOrEqual(9 * 2000);
	});
});

describe('the address that resumes an execution', () => {
	const at = (url: string) => contextOf({}, { evaluateExpression: () => url });
	const OF_12 = `${PUBLIC}/webhook-waiting/12`;

	it.each([
		[OF_12, `${OF_12}/media-generation`],
		[`${OF_12}?signature=a%2Fb`, `${OF_12}/media-generation?signature=a%2Fb`],
		[
			'http://n8n.test/n8n/webhook-waiting/12/',
			'http://n8n.test/n8n/webhook-waiting/12/media-generation',
		],
	])('made of %s is %s', (url, expected) => {
		expect(resumeUrl(at(url))).toBe(expected);
	});

	it('is made of what n8n calls its own, and has a token for the service', () => {
		const { origin, pathname, searchParams } = new URL(
			resumeCallbackUrl(contextOf(), CREDENTIAL) ?? '',
		);
		expect(origin + pathname).toBe(`${PUBLIC}/webhook-waiting/1/media-generation`);
		expect(searchParams.get('token')).toMatch(/^[0-9a-f]{64}$/);
	});

	it('is none where n8n has no public address with https:// or http:// before it', () => {
		expect(resumeUrl(at('n8n.test/webhook-waiting/12'))).toBe('');
	});

	it.each(['n8n.test', 'http://localhost:5678'])('is none for the service on %s', (host) => {
		expect(resumeCallbackUrl(at(`${host}/webhook-waiting/12`), CREDENTIAL)).toBeUndefined();
	});
});

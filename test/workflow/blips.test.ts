import { isTerminal } from './n8n/database';
import { type StoredRun, WorkflowN8n } from './n8n/workflowN8n';
import { useProcessedData } from './processedData';
import {
	field,
	IMAGE_MODEL,
	imageNode,
	item,
	keepsGoing,
	MINUTE,
	prompts,
	SECOND,
	stage,
	text,
} from './support';
import { pass, passUntil } from './time';

/** A stretch in which something before the service, or the service itself, answers every request in the same way. */

useProcessedData();
const on = stage();

const PAGE = (status: number) => `<html><head><title>${status}</title></head></html>`;

type Blip = [string, Record<string, unknown> & { status: number }];

/** Of each kind of meaning one: what each status means is decided in test/unit/service/meaning.test.ts. */
const BLIPS: Blip[] = [
	['404 as text', { status: 404, body: '404 page not found\n', contentType: 'text/plain' }],
	['404 as JSON', { status: 404, body: { message: 'no Route matched with those values' } }],
	['403 as a page', { status: 403, body: PAGE(403) }],
	['401', { status: 401, body: { error: { message: 'invalid api key' } } }],
	['422', { status: 422, body: { detail: 'unprocessable' } }],
	['308', { status: 308, headers: { location: 'https://maintenance.invalid/' } }],
];
/** What the limits of the account answer to. */
const PASSING: Blip[] = [
	['503 with Retry-After', { status: 503, body: { error: 'busy' }, retryAfter: 5 }],
];
/** After these nobody knows whether an order was taken. */
const DOUBTFUL: Blip[] = [
	['500', { status: 500, body: { error: 'internal' } }],
	['524', { status: 524, body: PAGE(524), headers: { server: 'cloudflare' } }],
];

const begin = (items: Parameters<typeof prompts>, options = {}, node = {}): StoredRun =>
	new WorkflowN8n(on.workflow(imageNode(options, node), prompts(...items))).begin();

const atEnd = async (run: StoredRun) => await passUntil(() => isTerminal(run.row.status));

const many = (count: number, seconds = 6) =>
	Array.from({ length: count }, (_, i) =>
		item(`p${i}`, { latencyMs: [seconds * 500, seconds * 1500] }),
	);

const refused = (run: StoredRun) => field(run.ran.output, 'error').filter(Boolean);

describe.each([...BLIPS, ...PASSING])('%s', (_what, refusal) => {
	it.each<[string, number, boolean]>([
		['a minute', MINUTE, true],
		['5 minutes, for creates alone', 5 * MINUTE, false],
	])('for %s in a batch costs no item', async (_long, ms, ofReads) => {
		const run = begin(many(40), {}, keepsGoing);
		await passUntil(() => on.created >= 15);
		on.service.configure({ createStatus: refusal, ...(ofReads && { readStatus: refusal }) });
		await pass(ms);
		on.service.resetSettings();
		await atEnd(run);
		expect(refused(run)).toEqual([]);
		expect(on.created).toBe(40);
	});

	it('for 5 minutes costs none of the last items of a batch', async () => {
		const run = begin(many(20), {}, keepsGoing);
		await passUntil(() => on.created >= 18);
		on.service.configure({ createStatus: refusal });
		await pass(5 * MINUTE);
		on.service.resetSettings();
		await atEnd(run);
		expect(refused(run)).toEqual([]);
		expect(on.created).toBe(20);
	});
});

/** A gateway was not connected with the service, so nothing was taken. */
const NOT_CONNECTED = { status: 521, body: PAGE(521), headers: { server: 'cloudflare' } };

it('521 for 5 minutes from the first order on costs no item', async () => {
	on.service.configure({ createStatus: NOT_CONNECTED });
	const run = begin(many(6), { maxInFlight: 2 }, keepsGoing);
	await pass(5 * MINUTE);
	on.service.resetSettings();
	await atEnd(run);
	expect(refused(run)).toEqual([]);
	expect(on.created).toBe(6);
	expect(on.elapsed).toBeLessThan(11 * MINUTE);
});

it.each(DOUBTFUL)(
	'%s for 5 minutes leaves the orders in doubt that were sent, sends few, and none twice',
	async (_what, refusal) => {
		const run = begin(many(40), {}, keepsGoing);
		await passUntil(() => on.created >= 15);
		on.service.configure({ createStatus: refusal });
		await pass(5 * MINUTE);
		const sent = on.creates.filter(({ status }) => status === refusal.status).length;
		on.service.resetSettings();
		await atEnd(run);
		const unknown = text('It is not known whether the task was created');
		expect(refused(run)).toEqual(Array(sent).fill(unknown));
		expect(sent).toBeGreaterThan(2);
		expect(sent).toBeLessThanOrEqual(6);
		expect(on.creates).toHaveLength(40);
	},
);

it.each(BLIPS)(
	'%s from the first order on ends a batch within two seconds',
	async (_what, refusal) => {
		on.service.configure({ createStatus: refusal });
		const run = begin(many(40));
		await atEnd(run);
		expect(run.row.status).toBe('error');
		expect(on.creates.length).toBeLessThanOrEqual(5);
		expect(on.elapsed).toBeLessThan(2 * SECOND);
	},
);

describe('answers without an id', () => {
	const EMPTY = { taskId: '', message: 'insufficient balance' };
	const words = 'The service named no task id: insufficient balance';
	const inDoubt = text(`It is not known whether the task was created. ${words}`);
	const notSent = text(`This item was not sent. ${words}`);

	it.each([
		['in the words of the service', { status: 200, body: EMPTY }, inDoubt, notSent],
		['a login page', { status: 200, body: PAGE(200) }, text('not JSON'), text('not JSON')],
	])(
		'that are alike from the first order on end a batch after five: %s',
		async (_, answer, five, others) => {
			on.service.configure({ createStatus: answer });
			const run = begin(many(40), {}, keepsGoing);
			await atEnd(run);
			expect(on.creates).toHaveLength(5);
			expect(refused(run)).toEqual([
				...Array<string>(5).fill(five),
				...Array<string>(35).fill(others),
			]);
			expect(on.elapsed).toBeLessThan(MINUTE);
		},
	);

	const answered = (body: object) => ({ createStatus: { status: 200, body } });
	it.each([
		['after the service took a task', [{}, ...Array<object>(7).fill(answered(EMPTY))]],
		[
			'that differ',
			Array.from({ length: 8 }, (_, i) => answered({ message: `${'no '.repeat(i)}luck` })),
		],
	])('%s are doubts of their items alone', async (_what, switches) => {
		const items = switches.map((each, i) => item(`p${i}`, { latencyMs: SECOND, ...each }));
		const run = begin(items, {}, keepsGoing);
		await atEnd(run);
		expect(on.creates).toHaveLength(8);
		expect(field(run.ran.output, 'error')).not.toContainEqual(text('was not sent'));
	});
});

describe.each([...BLIPS, ...PASSING, ...DOUBTFUL])('%s to every read', (_what, refusal) => {
	it('for 5 minutes ends no wait for tasks that were read before', async () => {
		on.service.configure({ latencyMs: MINUTE });
		const ids = [1, 2].map(() => on.service.createTask(IMAGE_MODEL, { prompt: 'x' }).taskId);
		const parameters = { resource: 'task', operation: 'wait', taskId: ids.join(',') };
		const run = new WorkflowN8n(on.workflow({ parameters })).begin();
		await pass(20 * SECOND);
		expect(on.requests('GET', '/api/generate/').length).toBeGreaterThan(4);
		on.service.configure({ readStatus: refusal });
		await pass(5 * MINUTE);
		on.service.resetSettings();
		await atEnd(run);
		expect(run.row.status).toBe('success');
		expect(field(run.ran.output, 'state')).toEqual(['SUCCESS', 'SUCCESS']);
	});
});

describe('a refused prompt', () => {
	const bad = (prompt: string) => item(prompt, { createStatus: 400 });
	const refusals = () => on.creates.filter(({ status }) => status === 400).length;
	const minutes = () => on.elapsed / MINUTE;

	it('among others is refused for good at its second order', async () => {
		const run = begin([...many(20), bad('bad'), ...many(20)], {}, keepsGoing);
		await atEnd(run);
		expect(refused(run)).toEqual([text('(HTTP 400)')]);
		expect([refusals(), on.created]).toEqual([2, 40]);
	});

	it.each([5, 40])('has a run of %d items that stops order one more', async (count) => {
		const run = begin([...many(count), bad('bad'), ...many(count)], { ifSomeFail: 'stop' });
		await atEnd(run);
		expect(run.ran.error?.message).toContain('(HTTP 400)');
		expect(on.created).toBeLessThanOrEqual(count + 2);
	});

	it('alone at the end of a batch is refused for good at its second order', async () => {
		const run = begin([...many(4), bad('bad')], { maxInFlight: 1 }, keepsGoing);
		await atEnd(run);
		expect(refused(run)).toEqual([text('(HTTP 400)')]);
		expect([refusals(), on.created]).toEqual([2, 4]);
		expect(minutes()).toBeLessThan(1.5);
	});

	it.each([
		['in the middle of a batch', 10],
		['at the end of a batch', 0],
	])('thirty times in a row %s costs ten minutes at most', async (_where, after) => {
		const thirty = Array.from({ length: 30 }, (_, i) => bad(`bad ${i}`));
		const run = begin([...many(10), ...thirty, ...many(after)], {}, keepsGoing);
		await atEnd(run);
		expect(refused(run)).toHaveLength(30);
		expect(on.created).toBe(10 + after);
		expect(minutes()).toBeLessThan(11);
	});
});

it('a key that is revoked in the middle of a batch ends the batch after ten minutes', async () => {
	const run = begin(many(200), {}, keepsGoing);
	await passUntil(() => on.created >= 15);
	on.service.configure({ createStatus: 401 });
	await atEnd(run);
	expect(on.elapsed / MINUTE).toBeLessThan(12);
	expect(on.created).toBe(15);
	expect(refused(run).at(-1)).toEqual(
		text('This item was not sent. The service refused the API key (HTTP 401)'),
	);
	expect(on.creates.length).toBeLessThan(70);
});

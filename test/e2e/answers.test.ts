import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/money';
import type { Settings } from '../service/settings';
import { outputItems } from '../n8n/client';
import { atTheSameTime, itemsOf, promptOf, type Run, succeeded } from './run';
import { AT_ONCE, openScene } from './scene';

/**
 * A service and a media host that trickle their answers, through n8n's own HTTP client, whose time limits do not end these;
 * the credential's test, and the trigger. What other answers mean: test/workflow/trickyAnswers.test.ts.
 */

const SECOND = 1_000;

const MODES: Record<string, IDataObject> = {
	held: { suspendAfter: 30 },
	asleep: AT_ONCE,
};

/** The moments of a run, milliseconds. */
const lasted = ({ startedAt, stoppedAt }: { startedAt?: unknown; stoppedAt?: unknown }) =>
	Date.parse(String(stoppedAt)) - Date.parse(String(startedAt));

/** The item of each task, and how many tasks each item has. */
function paidFor(run: Run, items: readonly IDataObject[]) {
	return items.map((item) => {
		const tasks = run.tasks.filter(({ record }) => promptOf(record) === promptOf(item));
		return { count: tasks.length, isNamed: tasks.some(({ taskId }) => taskId === item.taskId) };
	});
}

const ONCE = { count: 1, isNamed: true };

const scene = openScene({ clears: false });

describe('at the same time', () => {
	const story = atTheSameTime(test, 300);

	/** Runs an item for each of these, held and asleep. @returns each run, with its items and how long it took */
	async function inBothModes(name: string, switches: Settings[], options: IDataObject = {}) {
		const items = switches.map((each) => ({ latencyMs: SECOND, ...each }) as IDataObject);
		return await Promise.all(
			Object.entries(MODES).map(async ([mode, more]) => {
				const order = { name: `${name}, ${mode}`, options: { ...more, ...options } };
				const run = await scene.startImages(items, order);
				const execution = succeeded(await run.end(7 * 60 * SECOND));
				const output = outputItems(execution, 'Media');
				const ms = lasted(execution);
				console.log(`${order.name}: ${run.tasks.length} tasks, ${run.reads} reads, ${ms} ms`);
				return { mode, run, output, items: itemsOf(execution), ms };
			}),
		);
	}

	const filesOf = (output: readonly INodeExecutionData[]) =>
		output.map(({ binary }) => binary?.data?.mimeType);

	story('a create whose answer trickles to its end brings its task', async () => {
		const slow: Settings = { createWay: { fate: 'trickles', everyMs: 150 } };
		for (const { run, items, ms } of await inBothModes('Slow create', [slow, {}, slow])) {
			expect(items.map(({ state }) => state)).toEqual(Array(3).fill('SUCCESS'));
			expect(paidFor(run, items)).toEqual([ONCE, ONCE, ONCE]);
			expect(ms).toBeGreaterThan(5 * SECOND);
		}
	});

	story(
		'a read whose answer trickles is given up after half a minute, and the next one brings the record',
		async () => {
			const slow: Settings[] = [
				{ readWay: { fate: 'trickles', times: 1 } },
				{ readWay: { fate: 'trickles from its head', times: 1 } },
				{ readWay: { fate: 'stalls', times: 1 } },
			];
			for (const { run, items, ms } of await inBothModes('Slow read', [...slow, {}])) {
				expect(items.map(({ state }) => state)).toEqual(Array(4).fill('SUCCESS'));
				expect(paidFor(run, items)).toEqual(Array(4).fill(ONCE));
				expect(ms).toBeGreaterThan(29 * SECOND);
				expect(ms).toBeLessThan(120 * SECOND);
			}
		},
	);

	const DOWNLOADS = { downloadResults: true };

	story('a link that ends is read anew, and so all of 60 that finish together arrive', async () => {
		const ending: Settings = { linkLifeMs: 15 * SECOND, mediaDelayMs: 5 * SECOND };
		const late: Settings = {
			linkLifeMs: 2 * SECOND,
			mediaStatus: { status: 503, times: 1, retryAfter: 4 },
		};
		const switches = [late, ...Array<Settings>(59).fill(ending)];
		const options = { ...DOWNLOADS, maxInFlight: 60 };
		for (const { run, output, items } of await inBothModes('Ending', switches, options)) {
			expect(filesOf(output)).toEqual(Array(60).fill('image/png'));
			expect(paidFor(run, items)).toEqual(Array(60).fill(ONCE));
		}
	});

	/** What a media host may answer before the file. */
	const HOSTS: Record<string, Settings> = {
		trickles: { mediaWay: { fate: 'trickles', times: 1 } },
		'trickles from its head': { mediaWay: { fate: 'trickles from its head', times: 1 } },
	};

	story('a file that trickles is fetched again', async () => {
		const options = { downloadResults: true };
		for (const { mode, run, output, items, ms } of await inBothModes(
			'File',
			Object.values(HOSTS),
			options,
		)) {
			const files = filesOf(output).map((type, index) => [Object.keys(HOSTS)[index], type]);
			const expected = Object.keys(HOSTS).map((name) => [name, 'image/png']);
			expect({ mode, files }).toEqual({ mode, files: expected });
			expect(paidFor(run, items)).toEqual(items.map(() => ONCE));
			// A minute for the hosts that trickle.
			expect(ms).toBeGreaterThan(60 * SECOND);
			expect(ms).toBeLessThan(200 * SECOND);
		}
	});
});

describe('one after the other', () => {
	beforeEach(() => scene.clear());

	test("the credential's test shows a key that is refused in the body of a 200", async () => {
		const { stage, service, client } = scene;
		const credential = { ...stage.credential, type: 'mediaGenerationApi' };
		const verdictOn = async (creditsShape?: IDataObject) => {
			service.configure({ creditsShape });
			const data = { baseUrl: service.url, apiKey: service.apiKey };
			return await client.testCredential(credential, data);
		};
		const refused = { status: 'Error', message: expect.stringContaining('key') as string };
		expect(await verdictOn()).toMatchObject({ status: 'OK' });
		expect(await verdictOn({ code: 401, message: 'No.' })).toMatchObject(refused);
		expect(await verdictOn({ status: '403' })).toMatchObject(refused);
	});

	test('a callback whose read trickles is answered in time, and starts the workflow once', async () => {
		scene.service.configure({
			readWay: { fate: 'trickles', times: 1 },
			callbackBackoffMs: SECOND,
		});
		const { address } = await scene.publish();
		const { taskId } = scene.service.createTask(
			IMAGE_MODEL,
			{ prompt: 'Called back', simulate: { latencyMs: 0 } },
			address,
		);
		await scene.expectArrived([taskId]);
		expect(scene.service.callbacks.map(({ status }) => status)).toEqual([503, 200]);
	});
});

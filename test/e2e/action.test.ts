import { type IDataObject, type INode } from 'n8n-workflow';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { type Listening, listen } from '../listen';
import { outputItems, until } from '../n8n/client';
import { type SimulatedService, startService } from '../service/service';
import { needing } from './needs';
import { call, called, inARow, itemNodes, manualTrigger, node } from './nodes';
import { errorOf, itemsOf, promptOf, statesOf, succeeded } from './run';
import { openScene } from './scene';

const scene = openScene();

describe('an execution that ends while its tasks go on', () => {
	test('a held run that is stopped reads no more, and leaves its task in the log and in a short execution of the list', async () => {
		const run = await scene.startImages([{ latencyMs: 3_600_000 }]);
		await until('the task', 30_000, () => scene.tasks.length > 0);
		await run.stop();
		expect((await run.end(30_000)).status).toBe('canceled');
		// n8n keeps nothing of what a stopped node says.
		await scene.logged(`without paying again: ${scene.taskIds[0]}`);
		const before = scene.service.requests.length;
		const [taskId] = scene.taskIds;
		expect(await run.left()).toEqual([{ item: 1, taskId, state: 'PENDING' }]);
		await sleep(5000);
		expect(scene.service.requests).toHaveLength(before);
		expect(await run.others()).toHaveLength(1);
	});

	test('so does a run of which n8n saves nothing', async () => {
		const settings = { saveDataErrorExecution: 'none', saveDataSuccessExecution: 'none' } as const;
		const run = await scene.startImages([{ latencyMs: 3_600_000 }], { settings });
		await until('the task', 30_000, () => scene.tasks.length > 0);
		await run.stop();
		expect(await run.left()).toMatchObject([{ item: 1, state: 'PENDING' }]);
	});

	test('a run that is near its time limit is held, and its items leave before n8n cancels it', async () => {
		const settings = { executionTimeout: 10 };
		const node = { onError: 'continueRegularOutput' as const };
		const execution = await scene.runImages([{ latencyMs: 3_600_000 }], { settings, node });
		const [taskId] = scene.taskIds;
		expect(itemsOf(succeeded(execution))).toMatchObject([{ taskId, timedOut: true }]);
	});

	needing('storedStops', 'The stop of a caller').test(
		'an execution whose caller is stopped, of which n8n does not tell a sub-workflow, creates nothing more',
		async () => {
			const { client } = scene;
			const { id } = await client.createWorkflow({
				name: 'Called',
				...inARow(called(), ...scene.allAtOnce()),
			});
			await client.publish(id, []);
			const { workflowId } = await scene.start('Caller', call(id));
			await scene.expectStopHeard(workflowId);
		},
	);

	test('an execution that is stopped while creates are under way names what was sent without an answer, and the task when the answer comes after all', async () => {
		const before = scene.log.length;
		const log = () => scene.log.slice(before);
		scene.service.configure({ createDelayMs: 30_000 });
		const started = await scene.startImages(Array<IDataObject>(8).fill({ latencyMs: 60_000 }));
		await until('the first create', 30_000, () => scene.creates.length > 0);
		await sleep(500);
		await started.stop();
		expect((await started.end()).status).toBe('canceled');
		await until('the list', 25_000, () => log().includes('Sent, but the answer was lost: item 1'));
		// Neither the stop nor the list waits for an answer.
		expect(scene.creates.filter(({ status }) => status !== undefined)).toEqual([]);
		for (const taskId of scene.taskIds) expect(log()).not.toContain(taskId);
		await until('the late answers', 60_000, () =>
			scene.taskIds.every((taskId) => log().includes(`created task ${taskId}`)),
		);
		expect(log()).toMatch(
			/created task \S+ \(execution \d+, item 1\), after the execution was stopped/,
		);
		expect(log()).not.toMatch(/unhandled/i);
		// Nothing was created after the stop.
		expect(scene.creates.length).toBeLessThan(8);
	}, 180_000);
});

/** A run of each kind, on each n8n that is supported; what else comes out is in `test/workflow`. */
describe('each way of completion', () => {
	test('wait: the items carry every field of the contract, in input order', async () => {
		const switches = [{ latencyMs: 3000 }, { latencyMs: 0 }];
		const items = outputItems(succeeded(await scene.runImages(switches)), 'Media');
		expect(items.map(({ json }) => promptOf(json))).toEqual(['Prompt 0', 'Prompt 1']);
		for (const [index, { json, pairedItem }] of items.entries()) {
			expect(Object.keys(json).sort()).toEqual([
				'creditsConsumed',
				'estimatedCostUsd',
				'input',
				'model',
				'record',
				'resultUrls',
				'state',
				'taskId',
			]);
			expect(json).toMatchObject({ state: 'SUCCESS', creditsConsumed: 8, estimatedCostUsd: 0.08 });
			expect(pairedItem).toEqual({ item: index });
		}
	});

	test('with On Error: Continue (using error output) a failed item leaves by the second output', async () => {
		const failing = { outcome: 'FAILURE', failureMessage: 'no such colour' };
		const node = { onError: 'continueErrorOutput' as const };
		const execution = await scene.runImages([{}, failing, {}], { node });
		expect(statesOf(execution)).toEqual(['SUCCESS', 'SUCCESS']);
		const error = expect.stringContaining('no such colour') as string;
		const details = expect.objectContaining({ taskId: scene.taskIds[1], state: 'FAILURE' });
		expect(outputItems(execution, 'Media', 1).map(({ json }) => json)).toEqual([
			expect.objectContaining({ prompt: 'Prompt 1', error, details }),
		]);
	});

	test('return: the item leaves at once, and task: get and task: wait fetch it later', async () => {
		const order = scene.image({ prompt: 'later', completion: 'return' });
		const [created] = itemsOf(await scene.run('Order', itemNodes('Item', [{}]), order));
		expect(created).toMatchObject({ state: 'PENDING', resultUrls: [], creditsConsumed: null });
		expect(scene.reads).toEqual([]);
		const taskIds = [scene.slowTask().taskId, String(created?.taskId)];
		expect((await scene.onTasks('get', taskIds))[0]?.state).toBe('PENDING');
		scene.service.complete(taskIds[0] ?? '');
		const finished = await scene.onTasks('wait', taskIds);
		expect(finished).toMatchObject(taskIds.map((taskId) => ({ taskId, state: 'SUCCESS' })));
		expect(finished[0]).not.toHaveProperty('model');
	});

	test('trigger: where none is published it is not found by a run, its retry, or a sub-workflow that a run by hand calls', async () => {
		const order = () => scene.image({ prompt: 'x', completion: 'trigger' });
		const withTrigger = (name: string, start: INode) => {
			const wired = inARow(start, order());
			return { name, ...wired, nodes: [...wired.nodes, scene.trigger()] };
		};
		const alone = await scene.startWorkflow(withTrigger('Not published', manualTrigger()));
		const failed = await alone.end();
		const child = withTrigger('Called, and not published', called());
		const { id } = await scene.client.createWorkflow(child);
		const [without, calling] = [
			await scene.run('Without', order()),
			await scene.run('Calls', call(id)),
		];
		for (const execution of [without, failed, await alone.retry(), calling]) {
			expect(execution.status).toBe('error');
			// n8n 2.0 runs no sub-workflow that is not published.
			const isRefused = execution === calling ? '|Workflow is not active' : '';
			expect(errorOf(execution)?.message).toMatch(RegExp(`Media Generation Trigger${isRefused}`));
		}
		expect(scene.tasks).toEqual([]);
	});
});

describe('downloads', () => {
	/** Downloads the result of one task for each object of switches, with failed items coming out. */
	async function run(switches: IDataObject[]) {
		const execution = await scene.runImages(switches, {
			// What stumbles is tried again for as long.
			options: { downloadResults: true, timeout: 45 },
			node: { onError: 'continueRegularOutput' },
		});
		return outputItems(execution, 'Media');
	}

	/** Resident memory of the process that runs executions, in MiB. */
	function memoryMiB(): number {
		const status = readFileSync(`/proc/${scene.stage.runner.pid}/status`, 'utf8');
		return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
	}

	test('a result of 1 GiB goes into the file system, with less than a quarter of it as more memory in n8n', async () => {
		// Once before, so that what n8n loads for its first download is not counted.
		await run([{}]);
		const before = memoryMiB();
		let most = before;
		const watch = setInterval(() => (most = Math.max(most, memoryMiB())), 50);
		// The service calls a picture a film: the bytes tell.
		const [item] = await run([{ mediaBytes: 1024 ** 3, mediaType: 'video/mp4' }]);
		clearInterval(watch);
		console.log(`1 GiB: ${Math.round(most - before)} MiB more memory at most`);
		expect(item?.json.error).toBeUndefined();
		expect(item?.binary?.data).toMatchObject({ mimeType: 'image/png', fileSize: '1.07 GB' });
		// Most of it is what V8 has not collected yet, and more on a busy machine.
		expect(most - before).toBeLessThan(256);
	});

	test('a slow media host holds up no create, and is asked for ten files at once at most', async () => {
		const mediaDelayMs = 20_000;
		const switches = Array<IDataObject>(12).fill({ latencyMs: 200, mediaDelayMs });
		const options = { downloadResults: true, maxInFlight: 6 };
		const items = outputItems(await scene.runImages(switches, { options }), 'Media');
		expect(items.filter(({ binary }) => binary?.data)).toHaveLength(12);
		const creates = scene.creates.map(({ at }) => at);
		const media = scene.requests('media', 'GET').map(({ at }) => at);
		const firstFile = Math.min(...media) + mediaDelayMs;
		expect(creates).toHaveLength(12);
		expect(Math.max(...creates)).toBeLessThan(firstFile);
		expect(media.filter((at) => at < firstFile)).toHaveLength(10);
		expect(media).toHaveLength(12);
	});

	test('a bad result is an error of its item, which keeps the URL; the other items have their files, fetched without the key', async () => {
		const bad: Array<[IDataObject, string]> = [
			[{ mediaStatus: { status: 200, body: '<p>Not ready</p>' } }, 'web page'],
			[{ mediaStatus: { status: 200, body: '', contentType: 'image/png' } }, 'empty'],
			// It is shorter than its announced length.
			[{ mediaWay: 'cut short' }, 'broke off'],
			[{ mediaStatus: 404 }, 'HTTP 404'],
			[{ mediaWay: 'stalls' }, 'broke off'],
		];
		const busy = { mediaStatus: { status: 503, times: 1, retryAfter: 3 } };
		const good = [{}, busy, { mediaRedirect: true }];
		const items = await run([...bad.map(([switches]) => switches), ...good]);
		expect(items.slice(0, -3).map(({ json, binary }) => ({ ...json, binary }))).toMatchObject(
			bad.map(([, said]) => ({
				state: 'SUCCESS',
				resultUrls: [expect.stringContaining('http')],
				error: expect.stringContaining(said) as string,
				binary: undefined,
			})),
		);
		for (const { json, binary } of items.slice(-3)) {
			expect(json.error).toBeUndefined();
			expect(binary?.data).toMatchObject({ mimeType: 'image/png' });
		}
		const media = scene.service.requests.filter(({ path }) => path.includes('/media/'));
		expect(media.every(({ authorization }) => authorization === undefined)).toBe(true);
	});
});

describe('files', () => {
	/** How the output shows a file. */
	const SHOWN_FILE = /^data:image\/png;base64,… \(.*bytes\)$/;

	/** Seconds that a link is good for. */
	const TIMEOUT = 30;

	/** A node that makes a picture and downloads it. */
	const picture = (more: IDataObject = {}) => {
		const options = { downloadResults: true, additionalInput: '{}', ...more };
		return scene.image({ prompt: 'a lighthouse', options }, { name: 'Picture' });
	};

	needing('linksToFiles', 'Links to files').test(
		'the service fetches a file by the link that n8n has signed, and not after its time',
		async () => {
			const { service } = scene;
			const fromPicture = scene.media({
				resource: 'video',
				operation: 'generate',
				prompt: 'waves roll in',
				imageSource: 'binary',
				durationSeconds: 2,
				options: { sendFilesAs: 'link', timeout: TIMEOUT },
			});
			const run = await scene.start('Picture to video', picture(), fromPicture);
			const execution = succeeded(await run.end());
			const [made, video] = scene.tasks;
			const taskId = video?.taskId ?? '';
			const body = JSON.stringify(video?.record.input);
			expect(body).toContain('/rest/binary-data/signed?token=');
			expect(body.length).toBeLessThan(1000);

			// A task whose input has the address of the picture, and so what stands there.
			const copy = service.createTask('some/model', { urls: made?.record.resultUrls });
			const [original] = await service.fetchFiles(copy.taskId);
			const [fetched] = await service.fetchFiles(taskId);
			expect(fetched).toMatchObject({ status: 200, type: 'image/png' });
			expect(original?.body.length).toBeGreaterThan(1000);
			expect(fetched?.body.equals(original?.body ?? Buffer.alloc(0))).toBe(true);

			// Whoever has the link can open it, and nobody sees it in n8n.
			const [, token = ''] = /token=([\w.-]+)/.exec(fetched?.url ?? '') ?? [];
			expect(token).toMatch(/^eyJ/);
			const stored = JSON.stringify(await run.now());
			expect(stored).toContain('waves roll in');
			expect(stored).not.toContain(token.split('.').at(-1));
			expect(outputItems(execution, 'Media')[0]?.json).toMatchObject({
				state: 'SUCCESS',
				input: { image_url: expect.stringMatching(SHOWN_FILE) as string },
			});

			let late = fetched;
			await until('the link to end', 2 * TIMEOUT * 1000, async () => {
				[late] = await service.fetchFiles(taskId);
				return late?.status !== 200;
			});
			expect(late?.status).toBe(400);
		},
		400_000,
	);
});

/** Which n8n's own HTTP Request node can use. */
describe('the credential', () => {
	/** The service behind a path prefix, to which the credential of these tests belongs. */
	let service: SimulatedService;
	let credential: { id: string; name: string };

	/** Another host, and the headers of every request that came to it. */
	const visits: Array<string | undefined> = [];
	let elsewhere: Listening;
	beforeAll(async () => {
		elsewhere = await listen((request, response) => {
			visits.push(request.headers.authorization);
			response.setHeader('content-type', 'application/json').end('{}');
		});
		service = await startService({ pathPrefix: '/v1' });
		const data = { baseUrl: `${service.url}/`, apiKey: service.apiKey };
		const { id, name } = await scene.client.createCredential(
			'Prefixed',
			'mediaGenerationApi',
			data,
		);
		credential = { id, name };
	}, 900_000);
	afterAll(async () => {
		await service?.close();
		await elsewhere?.close();
	});
	beforeEach(() => {
		service.resetSettings();
		service.clear();
		visits.length = 0;
	});

	/** Sends a request with n8n's HTTP Request node and this package's credential. */
	async function request(url: string, parameters: IDataObject = {}, typeVersion = 4.2) {
		const type = {
			authentication: 'predefinedCredentialType',
			nodeCredentialType: 'mediaGenerationApi',
		};
		const all = { url, ...type, options: {}, ...parameters };
		const http = node('n8n-nodes-base.httpRequest', 'Request', all, typeVersion);
		const withKey = { ...http, credentials: { mediaGenerationApi: credential } };
		const execution = await scene.run(`HTTP Request ${typeVersion}`, withKey);
		const { error } = execution.data.resultData;
		expect(JSON.stringify(execution.data)).not.toContain(service.apiKey);
		const shown = `${error?.message} ${error?.description}`;
		return { error, shown, items: outputItems(execution, 'Request') };
	}

	const asked = () =>
		service.requests.map(({ method, path, status }) => `${method} ${path} ${status}`);

	test.each([4, 4.1, 4.2, 4.3, 4.4])(
		'version %d reads the credits of an address with a prefix',
		async (version) => {
			const { error, items } = await request(`${service.url}/api/credits`, {}, version);
			expect(error).toBeUndefined();
			expect(items[0]?.json).toMatchObject({ balance: 100_000 });
			expect(asked()).toEqual(['GET /v1/api/credits 200']);
		},
	);

	test.each([
		['another host', () => `${elsewhere.url}/v1/api/credits`],
		['a path beside the prefix', () => service.url.replace(/v1$/, 'v2/api/credits')],
		['a path that climbs out of the prefix', () => `${service.url}/../api/credits`],
	])('a request to %s is refused, and the message says where the key goes', async (_what, url) => {
		const { shown } = await request(url());
		expect(shown).toContain(`The API key of this credential is sent to ${service.url} only`);
		expect([asked(), visits]).toEqual([[], []]);
	});

	const maxRedirects = { redirect: { followRedirects: true, maxRedirects: 5 } };

	test.each([4, 4.2, 4.4])(
		'version %d follows no redirect with the key, whatever its options say',
		async (version) => {
			const headers = { location: `${elsewhere.url}/caught` };
			service.configure({ creditsStatus: { status: 302, headers } });
			service.configure({ createStatus: { status: 307, headers } });
			const task = '{ "model": "vendor/model", "input": { "prompt": "A lighthouse" } }';
			const body = { method: 'POST', sendBody: true, specifyBody: 'json', jsonBody: task };
			const credits = `${service.url}/api/credits`;
			for (const options of [{}, { redirect: maxRedirects }]) {
				expect((await request(credits, { options }, version)).error).toBeDefined();
			}
			expect((await request(`${service.url}/api/generate`, body, version)).error).toBeDefined();
			expect(visits).toEqual([]);
			const paths = [
				'GET /v1/api/credits 302',
				'GET /v1/api/credits 302',
				'POST /v1/api/generate 307',
			];
			expect(asked()).toEqual(paths);
		},
	);

	test('query parameters of the panel arrive beside those of the address', async () => {
		const queryParameters = { parameters: [{ name: 'b', value: 'two & more' }] };
		const url = `${service.url}/api/credits?a=1`;
		const { error } = await request(url, { sendQuery: true, queryParameters });
		expect(error).toBeUndefined();
		const [first = ''] = asked();
		const { searchParams } = new URL(first.split(' ')[1] ?? '', service.url);
		expect(Object.fromEntries(searchParams)).toEqual({ a: '1', b: 'two & more' });
	});

	test('pagination adds the key to each page, and does not take it along to another host', async () => {
		const credits = `${service.url}/api/credits`;
		const pages = async (nextURL: string) => {
			const pagination = {
				paginationMode: 'responseContainsNextURL',
				nextURL,
				paginationCompleteWhen: 'other',
				completeExpression: '={{ $response.body.none }}',
				limitPagesFetched: true,
				maxRequests: 3,
			};
			return await request(credits, { options: { pagination: { pagination } } });
		};
		const { error, items } = await pages(`={{ "${credits}?page=" + $pageCount }}`);
		expect(error).toBeUndefined();
		expect(items).toHaveLength(3);
		expect(service.requests.map(({ status }) => status)).toEqual([200, 200, 200]);

		service.clear();
		const next = `={{ $pageCount === 0 ? "${credits}" : "${elsewhere.url}/page" }}`;
		expect((await pages(next)).shown).toContain(`is sent to ${service.url} only`);
		expect(visits).toEqual([]);
		expect(asked()).toHaveLength(1);
	});
});

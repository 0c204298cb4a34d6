import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { outputItems, until } from '../../n8n/client';
import { isLikeN8n3 } from '../../n8n/settings';
import { needing } from '../needs';
import { call, called, inARow, manualTrigger, node } from '../nodes';
import { itemsOf, type Story, succeeded } from '../run';
import type { Scene } from '../scene';

const SECOND = 1_000;

/** How long a minute of n8n lasts in these tests, milliseconds. */
export const MINUTE_HERE = 6 * SECOND;

const HOUR_SECONDS = 3_600;

const trial = (name: string, parameters: IDataObject = {}) =>
	node('CUSTOM.trial', name, parameters);

/**
 * What the model of n8n has from n8n itself: see test/workflow/n8n/README.md. The nodes of these tests are trial nodes, where
 * they can be.
 */
export function testFacts(scene: Scene): void {
	test('what is due before n8n looks is woken by the look, at one second of the minute', async () => {
		const runs = [];
		for (let nth = 0; nth < 5; nth++) {
			const nodes = [trial('Sleeps', { sleepMs: 500 }), trial('Wakes')];
			runs.push(await scene.start(`Sleeper ${nth}`, ...nodes));
			await sleep(1.3 * SECOND);
		}
		const woken = await Promise.all(
			runs.map(async (run) => Number(itemsOf(succeeded(await run.end()), 'Wakes')[0]?.now)),
		);
		// They were due at moments that are spread over a whole minute. A busy machine may start one of them late.
		const isAtOnce = (one: number, other: number) => {
			const apart = Math.abs(one - other) % MINUTE_HERE;
			return Math.min(apart, MINUTE_HERE - apart) < SECOND;
		};
		const together = woken.map((one) => woken.filter((other) => isAtOnce(one, other)).length);
		expect(Math.max(...together)).toBeGreaterThanOrEqual(woken.length - 1);
	});

	needing('storedStops', 'The stop of a caller').test(
		'a stop is stored as an error that names the execution: a sub-workflow, to which n8n does not tell it, finds it there and creates nothing more',
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
}

/**
 * Facts that take a while to see.
 *
 * @param linked an account of its own
 */
export function testLongFacts(scene: Scene, linked: Scene, story: Story): void {
	/** n8n holds in memory what waits for less than 65 s. */
	const wait = () => node('n8n-nodes-base.wait', 'Wait', { amount: 2, unit: 'minutes' }, 1.1);

	story(
		'a retry that has slept: one process forgets what it retries, a worker does not; both say that the whole time limit is left',
		async () => {
			const nodes = [trial('First', { failsFirst: true }), wait(), trial('Second')];
			const run = await scene.startWorkflow({
				name: 'Retried',
				...inARow(manualTrigger(), ...nodes),
				settings: { executionTimeout: HOUR_SECONDS },
			});
			expect((await run.end()).status).toBe('error');
			const retry = succeeded(await run.retry());
			const [first] = itemsOf(retry, 'First');
			const [second] = itemsOf(retry, 'Second');
			expect(first).toMatchObject({ retryOf: run.id });
			expect(second).toMatchObject({ retryOf: isLikeN8n3() ? run.id : null });
			expect(Number(second?.now) - Number(first?.now)).toBeGreaterThan(MINUTE_HERE);
			for (const said of [first, second]) {
				expect(Number(said?.timeLeftMs)).toBeGreaterThan(HOUR_SECONDS * SECOND - 5 * SECOND);
			}
		},
	);

	story(
		'an execution that n8n cannot store when it goes to sleep is running for ever',
		async () => {
			const { database } = scene.stage;
			const nodes = () => [trial('Sleeps', { holdMs: 4 * SECOND, sleepMs: 500 }), trial('Wakes')];
			const run = await scene.start('Unstored', ...nodes());
			await until('it to run', 60 * SECOND, async () => (await run.now()).status === 'running');
			const [event, when] = ['before update on execution_entity', `old.id = ${run.id}`];
			await database.refuse('no_sleep', event, when, 'database away');
			// n8n stores this one, which begins later.
			succeeded(await (await scene.start('Later', ...nodes())).end());
			await database.forget('no_sleep');
			await sleep(2 * MINUTE_HERE);
			expect((await run.now()).status).toBe('running');
		},
	);

	/** How the output shows a file. */
	const SHOWN_FILE = /^data:image\/png;base64,… \(.*bytes\)$/;

	/** Seconds that a link is good for. */
	const TIMEOUT = 30;

	/** A node that makes a picture and downloads it. */
	const picture = (more: IDataObject = {}) => {
		const options = { downloadResults: true, additionalInput: '{}', ...more };
		return linked.image({ prompt: 'a lighthouse', options }, { name: 'Picture' });
	};

	const links = needing('linksToFiles', 'Links to files').test;
	(links === test ? story : links)(
		'the service fetches a file by the link that n8n has signed, and not after its time',
		async () => {
			const { service } = linked;
			const fromPicture = linked.media({
				resource: 'video',
				operation: 'generate',
				prompt: 'waves roll in',
				imageSource: 'binary',
				durationSeconds: 2,
				options: { sendFilesAs: 'link', timeout: TIMEOUT },
			});
			const run = await linked.start('Picture to video', picture(), fromPicture);
			const execution = succeeded(await run.end());
			const [made, video] = linked.tasks;
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
	);
}

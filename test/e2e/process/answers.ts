import { setTimeout as sleep } from 'node:timers/promises';

import { itemsOf, succeeded } from '../run';
import type { Scene } from '../scene';

/** What the answer of a gateway means for a batch. */
export function testAnswers(scene: Scene): void {
	test('521 from the first order on, for four seconds: all six items of a batch come', async () => {
		const { service } = scene;
		const body = '<html><title>api.example.com | 521: Web server is down</title></html>';
		service.configure({ createStatus: { status: 521, body, headers: { server: 'cloudflare' } } });
		const items = Array.from({ length: 6 }, () => ({ latencyMs: 500 }));
		const run = await scene.startImages(items, { options: { maxInFlight: 2 } });
		await sleep(4_000);
		service.configure({ createStatus: undefined });
		const ended = itemsOf(succeeded(await run.end()));
		expect(ended.map(({ state }) => state)).toEqual(Array(6).fill('SUCCESS'));
		expect(scene.creates.filter(({ status }) => status === 521).length).toBeGreaterThan(0);
		expect(scene.creates.filter(({ status }) => status === 200)).toHaveLength(6);
	});
}

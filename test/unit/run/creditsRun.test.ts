import { readCredits } from '../../../nodes/MediaGeneration/run/creditsRun';
import nock from '../../nock';
import { executeContext, SERVICE } from '../../workflow/engine';
import { BusyClock } from '../support';

it('leaves the thread to the rest of n8n every 25 ms, however many items come in', async () => {
	nock(SERVICE).get('/api/credits').reply(200, { balance: 5 });
	const clock = new BusyClock();
	const context = executeContext({
		node: { type: 'mediaGenerationCredits', parameters: { options: { minimumBalance: 1 } } },
		items: Array.from({ length: 200 }, () => ({ json: {} })),
	});
	expect(await readCredits(context, clock)).toHaveLength(200);
	expect(clock.sleeps.length).toBeGreaterThanOrEqual(Math.floor(200 / 27));
});

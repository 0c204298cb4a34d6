import { readCredits } from '../../../nodes/MediaGeneration/run/creditsRun';
import { ServiceClient } from '../../../nodes/MediaGeneration/service/client';
import { executeContext } from '../../workflow/engine';
import { BusyClock } from '../support';

it('leaves the thread to the rest of n8n every 25 ms, however many items come in', async () => {
	jest.spyOn(ServiceClient.prototype, 'readCredits').mockResolvedValue({ balance: 5 });
	const clock = new BusyClock();
	const context = executeContext({
		node: { type: 'mediaGenerationCredits', parameters: { options: { minimumBalance: 1 } } },
		items: Array.from({ length: 200 }, () => ({ json: {} })),
	});
	expect(await readCredits(context)).toHaveLength(200);
	expect(clock.sleeps.length).toBeGreaterThanOrEqual(Math.floor(200 / 27));
});

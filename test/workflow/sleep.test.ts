import type { IDataObject } from 'n8n-workflow';

import { Sleeper } from './sleeping';
import { fails, field, imageNode, item, MINUTE, prompts, stage } from './support';

const on = stage();

/** A prompt whose task takes so many minutes. */
const slow = (prompt: string, minutes = 7) => item(prompt, { latencyMs: minutes * MINUTE });

/** A run of one image for each prompt, up to its end. */
async function asleep(items: Parameters<typeof prompts>, options: IDataObject = {}, more = {}) {
	const sleeper = new Sleeper(on.workflow(imageNode(options, more), prompts(...items)));
	await sleeper.begin();
	return sleeper;
}

it('a run that waits long sleeps, is woken, and puts out what a held run puts out', async () => {
	const run = await asleep([slow('a'), slow('b', 20), fails('c')], { ifSomeFail: 'keep' });
	expect(run.ran.isSuspended).toBe(true);
	const { output } = await run.toEnd();
	expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS', 'FAILURE']);
});

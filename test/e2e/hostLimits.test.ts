import { outputItems } from '../n8n/client';
import { itemNodes, withField } from './nodes';
import { AT_ONCE } from './atOnce';
import { statesOf, succeeded } from './run';
import { openScene } from './scene';

/** An n8n that is short of memory for expressions, and limits how long executions and how large files may be. */

const scene = openScene({
	env: {
		N8N_EXPRESSION_ENGINE_MEMORY_LIMIT: '8',
		EXECUTIONS_TIMEOUT: '900',
		N8N_DEFAULT_BINARY_DATA_MODE: 'database',
		N8N_BINARY_DATA_DATABASE_MAX_FILE_SIZE: '1',
	},
});

const COUNT = 40;

/** Much text for each item: more of them together than an expression may hold. */
const MUCH = 500_000;

test('a run that is too large for an expression sleeps, and comes out complete', async () => {
	scene.service.configure({ latencyMs: 8_000 });
	const numbers = Array.from({ length: COUNT }, (_, number) => ({ number }));
	const prompt = `={{ $json.number + ' '.padEnd(${MUCH}, 'x') }}`;
	const prompts = withField('Prompts', 'prompt', prompt);
	const order = scene.image({ options: AT_ONCE });
	const run = await scene.start('Large', itemNodes('Numbers', numbers), prompts, order);
	const execution = succeeded(await run.end());
	expect(run.sleeps).toBeGreaterThan(1);
	expect(statesOf(execution)).toEqual(Array(COUNT).fill('SUCCESS'));
	expect(execution.data.resultData.runData).toHaveProperty('Prompts');
}, 400_000);

test("a result that is too large for n8n's database names n8n's setting", async () => {
	const switches = [{ mediaBytes: 3 * 1024 ** 2, mediaType: 'video/mp4' }, {}];
	const options = { downloadResults: true };
	const execution = await scene.runImages(switches, { options });
	const [large, small] = outputItems(execution, 'Media');
	expect(large?.json.error).toMatch(/^n8n could not keep the result of 3 MiB: http/);
	expect(large?.json.state).toBe('SUCCESS');
	expect(small?.binary?.data).toMatchObject({ mimeType: 'image/png' });
});

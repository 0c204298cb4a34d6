import { field, imageNode, stage, threeTries } from './support';

const on = stage();

const LINES = 'A red bird\n\nA blue bird\nA green bird';
const perLine = (...[options, more]: Parameters<typeof imageNode>) =>
	imageNode(
		{ additionalInput: '{}', ...options },
		{ ...more, parameters: { prompt: LINES, promptPerLine: true } },
	);

const prompts = () => on.inputs.map(({ prompt }) => prompt);
const THREE = ['A red bird', 'A blue bird', 'A green bird'];

it('three lines make three pictures, in their order, each linked to the one item', async () => {
	const { output, hints } = await on.run(perLine({ downloadResults: true, includeInput: true }), [
		{ json: { row: 7 } },
	]);
	expect(prompts().sort()).toEqual([...THREE].sort());
	expect(output.map(({ json }) => (json.input as { prompt: string }).prompt)).toEqual(THREE);
	expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS', 'SUCCESS']);
	expect(field(output, 'row')).toEqual([7, 7, 7]);
	expect(output.map(({ pairedItem }) => pairedItem)).toEqual(Array(3).fill({ item: 0 }));
	expect(output.map(({ binary }) => binary?.data?.mimeType)).toEqual(Array(3).fill('image/png'));
	expect(output.map(({ binary }) => binary?.data?.fileName)).toEqual([
		expect.stringMatching(/^1-1-a-red-bird-/),
		expect.stringMatching(/^1-2-a-blue-bird-/),
		expect.stringMatching(/^1-3-a-green-bird-/),
	]);
	expect(hints.join()).toContain('3 tasks, about 0.24 USD, 24 credits.');
});

it('a next try takes up the task of each line, and pays for none twice', async () => {
	on.service.configure({ readStatus: { status: 404, times: 1 } });
	const { output, error } = await on.run(perLine({}, threeTries), [{ json: {} }]);
	expect(error).toBeUndefined();
	expect(on.creates).toHaveLength(3);
	expect(output.map(({ json }) => (json.input as { prompt: string }).prompt)).toEqual(THREE);
});

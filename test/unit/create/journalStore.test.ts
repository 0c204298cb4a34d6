import { notePause, pauseLeft } from '../../../nodes/MediaGeneration/create/journal';
import { API_KEY, executeContext } from '../../workflow/engine';

const contextOf = () =>
	executeContext({ node: {}, credential: { baseUrl: 'https://api.example.com', apiKey: API_KEY } });

beforeEach(() => jest.useFakeTimers({ now: 1_000_000 }));
afterEach(() => jest.useRealTimers());

it('a pause that the service asks for is kept, and runs out', () => {
	const context = contextOf();
	notePause(context, 5000);
	expect(pauseLeft(context)).toBe(5000);
	jest.setSystemTime(1_004_000);
	expect(pauseLeft(context)).toBe(1000);
	jest.setSystemTime(1_006_000);
	expect(pauseLeft(context)).toBe(0);
});

it('is never longer than it was asked for, where the clock was set back', () => {
	const context = contextOf();
	notePause(context, 5000);
	jest.setSystemTime(0);
	expect(pauseLeft(context)).toBe(5000);
});

it.each([
	['nothing', null],
	['a number', 1_005_000],
	['a text', '1005000'],
	['an object', { until: 1_005_000 }],
	['too few', [1_005_000]],
	['texts', ['1005000', '5000']],
	['no numbers', [null, null]],
])('what is stored in another shape (%s) is no pause, and can be replaced', (_what, stored) => {
	const context = contextOf();
	context.getContext('node').askedPause = stored;
	expect(pauseLeft(context)).toBe(0);
	notePause(context, 5000);
	expect(pauseLeft(context)).toBe(5000);
});

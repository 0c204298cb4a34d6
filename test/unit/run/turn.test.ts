import { forgetLooks, noteWake } from '../../../nodes/MediaGeneration/n8n/wakes';
import { Turn, type TurnRule } from '../../../nodes/MediaGeneration/run/turn';
import { clock, Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { HOUR, MINUTE, SECOND } from '../../durations';
import { pass, time, virtualTime } from '../../workflow/time';

virtualTime();
beforeEach(forgetLooks);

/** A turn that begins now, in a run that began so long ago; and how long it lasts from now on. */
function begun(ageMs = 0, more: Partial<TurnRule> = {}, orders = 0) {
	const startedAt = clock.now();
	const rule = { suspendAfterMs: 5 * MINUTE, signal: undefined, ...more };
	const turn = new Turn({ startedAt, runStartedAt: startedAt - ageMs, ...rule });
	const left = Array.from({ length: orders }, () => ({}));
	turn.begin(left);
	const seconds = () => Math.round((turn.endsAt - startedAt) / SECOND);
	return { turn, left, seconds };
}

/** n8n has looked for due executions now, as a run shows that was due some seconds before. */
const lookedNow = () => noteWake(clock.now() - 5 * SECOND);

describe('a turn lasts', () => {
	it.each<[string, number, Partial<TurnRule>, number, number]>([
		["until 'Sleep After' from the start of the run", 0, {}, 0, 300],
		['no longer while something is to be ordered', 0, {}, 1, 300],
		['no time, if it is a later one, and has nothing to order', 10 * MINUTE, {}, 0, -Infinity],
		['while it orders, if it is a later one', 10 * MINUTE, {}, 1, 300],
		['a minute at least while it orders', 10 * MINUTE, { suspendAfterMs: 3000 }, 1, 60],
		["no time, with 'Sleep After' 0", 0, { suspendAfterMs: 0 }, 0, -Infinity],
		["a minute while it orders, with 'Sleep After' 0", 1, { suspendAfterMs: 0 }, 1, 60],
	])('%s', (_what, ageMs, more, orders, expected) => {
		expect(begun(ageMs, more, orders).seconds()).toBe(expected);
	});

	it('for ever, if the run is held, and its end cannot be asked for', async () => {
		const { turn } = begun(HOUR, { suspendAfterMs: Infinity }, 1);
		turn.end();
		turn.noteOrder();
		await pass(100 * HOUR);
		expect([turn.isOver, turn.maySleep, turn.readsUntil]).toEqual([false, false, Infinity]);
	});

	it('until nothing more is to be ordered', () => {
		const { turn, left } = begun(10 * MINUTE, {}, 2);
		turn.noteLeft(left[0]!, false);
		expect(turn.isOver).toBe(false);
		turn.noteLeft(left[1]!, false);
		expect(turn.isOver).toBe(true);
	});

	it('as long again from each order that was taken, and each task that ended', async () => {
		const { turn } = begun(HOUR, {}, 1);
		await pass(4 * MINUTE);
		turn.noteProgress();
		await pass(4 * MINUTE);
		expect([turn.isOver, turn.isStuck]).toEqual([false, false]);
		await pass(MINUTE);
		expect([turn.isOver, turn.isStuck]).toEqual([true, true]);
	});

	it.each([
		[59, false],
		[60, true],
	])('no longer when the service asks for a pause of %d s: %s', (seconds, isOver) => {
		const { turn } = begun(HOUR, {}, 1);
		turn.pause(clock.now() + seconds * SECOND);
		expect(turn.isOver).toBe(isOver);
	});

	it("until 'Sleep After', whatever pause the service asks for before", () => {
		const { turn, seconds } = begun(0, {}, 1);
		turn.pause(clock.now() + HOUR);
		expect(seconds()).toBe(300);
	});
});

describe('the checkpoint of a turn that has ordered', () => {
	it.each<[string, number, number, number]>([
		['at Sleep After in the first turn', 0, 10, 300],
		['a minute after the first order in a later turn', HOUR, 10, 70],
	])('comes %s, while nobody knows when n8n looks', async (_when, ageMs, seconds, expected) => {
		const { turn, seconds: lasts } = begun(ageMs, {}, 9);
		await pass(seconds * SECOND);
		turn.noteOrder();
		turn.noteProgress();
		expect(lasts()).toBe(expected);
	});

	it.each([
		// The next look is at 60 s: an order is half a minute old at its checkpoint.
		[0, 55],
		[25, 55],
		[26, 115],
		[59, 115],
	])(
		'comes 5 s before a look of n8n: of an order after %d s at %d s',
		async (orderAt, expected) => {
			lookedNow();
			const { turn, seconds } = begun(0, {}, 9);
			await pass(orderAt * SECOND);
			turn.noteOrder();
			expect(seconds()).toBe(expected);
		},
	);

	it('counts from the first order of the turn, however many follow', async () => {
		lookedNow();
		const { turn, seconds } = begun(HOUR, {}, 9);
		for (let count = 0; count < 5; count++) {
			turn.noteOrder();
			turn.noteProgress();
			await pass(10 * SECOND);
		}
		expect(seconds()).toBe(55);
		await pass(5 * SECOND);
		expect(turn.isOver).toBe(true);
	});

	it('comes no later than the turn ends otherwise', async () => {
		lookedNow();
		const { turn, left } = begun(HOUR, {}, 1);
		turn.noteOrder();
		turn.noteLeft(left[0]!, false);
		expect(turn.isOver).toBe(true);
	});

	it('is the last moment at which a read of the turn is sent', () => {
		lookedNow();
		const { turn } = begun(0, {}, 9);
		expect(turn.readsUntil - turn.startedAt).toBe(5 * MINUTE);
		turn.noteOrder();
		expect(turn.readsUntil - turn.startedAt).toBe(55 * SECOND);
	});

	it('is not learnt from a wake in time, by which n8n shows its timer alone', () => {
		noteWake(clock.now() - 500);
		const { turn, seconds } = begun(0, {}, 9);
		turn.noteOrder();
		expect(seconds()).toBe(300);
	});
});

it('each task is read in a turn, also in one that is over when it begins', () => {
	const { turn } = begun(HOUR);
	expect([turn.isOver, turn.readsUntil - turn.startedAt]).toEqual([true, 5 * MINUTE]);
});

describe('who waits for a moment', () => {
	/** Waits, and says when it went on, in seconds, and whether the turn does. */
	function waits(turn: Turn, seconds: number) {
		const at = clock.now();
		const seen: { at?: number; goesOn?: boolean; error?: unknown } = {};
		turn.reaches(at + seconds * SECOND).then(
			(goesOn) => Object.assign(seen, { goesOn, at: Math.round((clock.now() - at) / SECOND) }),
			(error: unknown) => Object.assign(seen, { error }),
		);
		return seen;
	}

	it.each([
		['at the moment', 30, 30, true],
		['at the end of the turn', 3600, 300, false],
		['at the moment that is the end of the turn', 300, 300, true],
	])('goes on %s', async (_when, seconds, at, goesOn) => {
		const { turn } = begun();
		const seen = waits(turn, seconds);
		await pass(2 * HOUR);
		expect(seen).toEqual({ at, goesOn });
	});

	it.each<[string, (turn: Turn, left: object[]) => void]>([
		['end() is called', (turn) => turn.end()],
		['nothing more is to be ordered', (turn, left) => turn.noteLeft(left[0]!, false)],
		['the service asks for an hour', (turn) => turn.pause(clock.now() + HOUR)],
	])('goes on when %s, since the turn ends', async (_what, happens) => {
		const { turn, left } = begun(HOUR, {}, 1);
		const seen = waits(turn, 200);
		await pass(10 * SECOND);
		expect(seen).toEqual({});
		happens(turn, left);
		await pass(1);
		expect(seen).toEqual({ at: 10, goesOn: false });
	});

	it('goes on at the checkpoint of an order that came later', async () => {
		lookedNow();
		const { turn } = begun(HOUR, {}, 9);
		const seen = waits(turn, 200);
		turn.noteOrder();
		await pass(MINUTE);
		expect(seen).toEqual({ at: 55, goesOn: false });
	});

	it('goes on at once where the turn is over, and the moment has not come', async () => {
		const { turn } = begun(HOUR);
		const seen = waits(turn, 1);
		await pass(1);
		expect(seen).toEqual({ at: 0, goesOn: false });
	});

	it('hears of a stop', async () => {
		const stop = new AbortController();
		const { turn } = begun(0, { signal: stop.signal });
		const seen = waits(turn, 3600);
		stop.abort();
		await pass(1);
		expect(seen.error).toBeInstanceOf(Stopped);
	});

	it.each([false, true])(
		'leaves no timer behind when the turn is closed (held: %s)',
		async (isHeld) => {
			const { turn } = begun(0, isHeld ? { suspendAfterMs: Infinity } : {});
			waits(turn, 3600);
			await pass(1);
			expect(time.timersLeft).toBe(1);
			turn.close();
			await pass(1);
			expect(time.timersLeft).toBe(0);
		},
	);
});

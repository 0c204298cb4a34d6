import type { Stretch } from '../../../nodes/MediaGeneration/n8n/stretch';
import { forgetLooks, noteWake } from '../../../nodes/MediaGeneration/n8n/wakes';
import { Turn, type TurnRule } from '../../../nodes/MediaGeneration/run/turn';
import { clock, Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { HOUR, MINUTE, SECOND } from '../../durations';
import { pass, time, virtualTime } from '../../workflow/time';

virtualTime();
beforeEach(forgetLooks);

/** How a turn begins: how old the run is, what it has to order, and how long ago the execution has ordered first. */
interface Begin extends Partial<TurnRule> {
	ageMs?: number;
	orders?: number;
	/** How long ago the execution sent an order that n8n has not stored. */
	orderedMs?: number;
	stretchMs?: number;
}

/** A turn that begins now; and how long it lasts from now on, seconds. */
function begun({ ageMs = 0, orders = 0, orderedMs, stretchMs = 0, ...more }: Begin = {}) {
	const startedAt = clock.now();
	const beganAt = startedAt - stretchMs;
	const stretch: Stretch = { beganAt, isStored: false, startedAt: beganAt };
	if (orderedMs !== undefined) stretch.orderedAt = startedAt - orderedMs;
	const rule = { suspendAfterMs: 5 * MINUTE, hasSlept: false, isWatched: false, stretch };
	const since = { startedAt, runStartedAt: startedAt - ageMs };
	const turn = new Turn({ ...since, ...rule, signal: undefined, ...more });
	const left = Array.from({ length: orders }, () => ({}));
	turn.begin(left);
	const seconds = () => Math.round((turn.endsAt - startedAt) / SECOND);
	return { turn, left, seconds, stretch };
}

/** n8n looks so many seconds from now, and each minute, as the process knows. */
function looksIn(seconds: number): void {
	const now = clock.now;
	const at = now() - (60 - seconds) * SECOND;
	clock.now = () => at;
	noteWake(at - 10 * SECOND);
	clock.now = now;
}

describe('while nobody knows when n8n looks, a turn lasts', () => {
	it.each<[string, Begin, number]>([
		["until 'Sleep After' from the start of the run", {}, 300],
		['no longer while something is to be ordered', { orders: 1 }, 300],
		['no time, if the run is older and has nothing to order', { ageMs: 10 * MINUTE }, -Infinity],
		['while it orders, if the run is older', { ageMs: 10 * MINUTE, orders: 1 }, 300],
		['a minute at least while it orders', { ageMs: HOUR, suspendAfterMs: 3000, orders: 1 }, 60],
		["no time, with 'Sleep After' 0", { suspendAfterMs: 0 }, -Infinity],
		["a minute while it orders, with 'Sleep After' 0", { suspendAfterMs: 0, orders: 1 }, 60],
		[
			"until 'Sleep After' from the beginning of the execution, in a later round of a loop",
			{ stretchMs: 4 * MINUTE, orderedMs: 4 * MINUTE, orders: 1 },
			60,
		],
	])('%s', (_what, begin, expected) => {
		const { turn, seconds } = begun(begin);
		expect(turn.isOver).toBe(expected < 0);
		if (expected > 0) expect(seconds()).toBe(expected);
	});

	it('for ever, if the run is held, and its end cannot be asked for', async () => {
		const { turn } = begun({ suspendAfterMs: Infinity, ageMs: HOUR, orders: 1 });
		turn.end();
		turn.noteOrder();
		await pass(100 * HOUR);
		expect([turn.isOver, turn.maySleep, turn.storeAt]).toEqual([false, false, Infinity]);
	});
});

describe('the turn of an active run ends five seconds before a look of n8n', () => {
	const old = { ageMs: HOUR };

	it.each<[string, number, Begin, number]>([
		['young, nothing ordered: the first look after half a minute', 60, {}, 55],
		['young, the look is near', 20, {}, 75],
		['young, and woken by a look', 60, { ageMs: MINUTE }, 55],
		['young, in a stretch that is older than half a minute', 20, { stretchMs: MINUTE }, 15],
		[
			'young, an order of the execution is ten seconds old',
			20,
			{ orderedMs: 10_000, stretchMs: 10_000 },
			75,
		],
		[
			'young, an order of the execution is old enough',
			20,
			{ orderedMs: 20_000, stretchMs: 20_000 },
			15,
		],
		[
			'young, the look is too near to store the run',
			3,
			{ orderedMs: MINUTE, stretchMs: MINUTE },
			58,
		],
		[
			'young, and it has slept: the next look, however young the order',
			20,
			{ hasSlept: true, orderedMs: 0 },
			15,
		],
		['old, and it orders', 60, { ...old, orders: 1 }, 55],
		[
			"watched by a person, and it orders: no look before 'Sleep After'",
			60,
			{ isWatched: true, orders: 1 },
			300,
		],
		[
			'watched by a person, and it has slept: the next look',
			60,
			{ isWatched: true, hasSlept: true },
			55,
		],
		[
			"watched by a person, with 'Sleep After' of ten seconds",
			60,
			{ isWatched: true, suspendAfterMs: 10_000, orders: 1 },
			55,
		],
		["a young run with 'Sleep After' of a minute", 60, { suspendAfterMs: MINUTE }, 55],
	])('%s', (_what, look, begin, expected) => {
		looksIn(look);
		expect(begun(begin).seconds()).toBe(expected);
	});

	it("while a person watches the run, a look after 'Sleep After', if it goes on ordering", async () => {
		looksIn(60);
		const { turn, seconds } = begun({ isWatched: true, orders: 9 });
		turn.noteOrder();
		await pass(2 * MINUTE);
		turn.noteProgress();
		expect(seconds()).toBe(355);
	});

	it.each<[string, number, Begin]>([
		['an old run that has ordered everything', 60, old],
		["a run with 'Sleep After' 0 that has ordered everything", 60, { suspendAfterMs: 0 }],
		[
			'a run that begins where an order is not stored for longer than Sleep After',
			30,
			{ orderedMs: 6 * MINUTE, stretchMs: 6 * MINUTE, orders: 1 },
		],
	])('and is over at once: %s', (_what, look, begin) => {
		looksIn(look);
		expect(begun(begin).turn.isOver).toBe(true);
	});

	it.each([
		[0, 60, 55],
		[25, 60, 55],
		[26, 60, 115],
		[59, 60, 115],
	])('an order after %d s, a look at %d s: at %d s', async (orderAt, look, expected) => {
		looksIn(look);
		const { turn, seconds } = begun({ orders: 9 });
		await pass(orderAt * SECOND);
		turn.noteOrder();
		expect(seconds()).toBe(orderAt === 59 ? -Infinity : expected);
		if (orderAt === 59) expect(turn.isOver).toBe(true);
	});

	it('counts from the first order of the execution, however many follow', async () => {
		looksIn(60);
		const { turn } = begun({ ...old, orders: 9 });
		for (let count = 0; count < 5; count++) {
			turn.noteOrder();
			turn.noteProgress();
			await pass(10 * SECOND);
		}
		expect(turn.isOver).toBe(false);
		await pass(5 * SECOND);
		expect(turn.isOver).toBe(true);
	});

	it("comes no later than the turn ends otherwise: at 'Sleep After', and when nothing more is to be ordered", () => {
		looksIn(60);
		expect(begun({ ageMs: 4.5 * MINUTE }).seconds()).toBe(30);
		const { turn, left } = begun({ ...old, orders: 1 });
		turn.noteOrder();
		turn.noteLeft(left[0]!, false);
		expect(turn.isOver).toBe(true);
	});
});

describe('a turn that is told when n8n looks', () => {
	it.each([
		// The next look is a minute after the wake that was late.
		[0, 55],
		[20, 75],
		[100, 155],
		[200, 255],
	])('after %d s ends at %d s, and wakes all who wait', async (toldAt, expected) => {
		const { turn, seconds } = begun({ orders: 9 });
		turn.noteOrder();
		await pass(toldAt * SECOND);
		expect(seconds()).toBe(300);
		noteWake(clock.now() - 10 * SECOND);
		expect(seconds()).toBe(expected);
		const wakes = turn.reaches(Infinity);
		await pass((expected - toldAt) * SECOND + 1);
		expect(await wakes).toBe(false);
	});

	it('moves with the look, never into the past', async () => {
		looksIn(60);
		const { turn, seconds } = begun({ orders: 9 });
		await pass(52 * SECOND);
		// Somebody was woken ten seconds before the look that was known.
		looksIn(50);
		noteWake(-Infinity);
		expect(seconds()).toBeGreaterThan(52);
		expect(turn.isOver).toBe(false);
	});

	it('is told nothing by a wake in time, by which n8n shows its timer alone', () => {
		const { seconds } = begun({ orders: 9 });
		noteWake(clock.now() - 500);
		expect(seconds()).toBe(300);
	});

	it('is told nothing when it is closed', () => {
		const { turn } = begun({ orders: 9 });
		const { storeAt } = turn;
		turn.close();
		noteWake(-Infinity);
		expect(turn.storeAt).toBe(storeAt);
	});
});

describe('a run that orders is active', () => {
	it('as long again from each order that was taken, and each task that ended', async () => {
		const { turn } = begun({ ageMs: HOUR, orders: 1, stretchMs: 0 });
		await pass(4 * MINUTE);
		turn.noteProgress();
		await pass(4 * MINUTE);
		expect([turn.isActive, turn.isStuck]).toEqual([true, false]);
		await pass(MINUTE);
		expect([turn.isActive, turn.isStuck]).toEqual([false, true]);
	});

	it('counting the time awake of the turns before', async () => {
		const { turn } = begun({ ageMs: HOUR, orders: 1, idleMs: 4.5 * MINUTE });
		await pass(29 * SECOND);
		expect([turn.isActive, turn.idleMs]).toEqual([true, 4.5 * MINUTE + 29 * SECOND]);
		await pass(SECOND);
		expect([turn.isActive, turn.isOver]).toEqual([false, true]);
	});

	it.each([
		[59, true],
		[60, false],
	])('while the service asks for a pause of %d s: %s', (seconds, isActive) => {
		const { turn } = begun({ ageMs: HOUR, orders: 1 });
		turn.pause(clock.now() + seconds * SECOND);
		expect([turn.isActive, turn.isOver]).toEqual([isActive, !isActive]);
	});

	it("until 'Sleep After', whatever pause the service asks for before", () => {
		const { turn, seconds } = begun({ orders: 1 });
		turn.pause(clock.now() + HOUR);
		expect(seconds()).toBe(300);
	});
});

describe('a turn that has ended goes on', () => {
	it('where n8n could not store the run before the look', async () => {
		looksIn(60);
		const { turn, seconds } = begun({ orders: 1 });
		await pass(55 * SECOND);
		expect([turn.isOver, turn.hasMissedLook]).toEqual([true, false]);
		await pass(3 * SECOND + 1);
		expect(turn.hasMissedLook).toBe(true);
		turn.goOn();
		expect(turn.isOver).toBe(false);
		expect(seconds()).toBe(115);
		const waits = turn.reaches(Infinity);
		await pass(57 * SECOND + 1);
		expect(await waits).toBe(false);
	});

	it('never for a look, where the run is not active any more', async () => {
		looksIn(60);
		const { turn } = begun({ ageMs: HOUR });
		await pass(59 * SECOND);
		expect(turn.hasMissedLook).toBe(false);
	});
});

describe('something that takes long begins', () => {
	it.each<[string, number, number, Begin, boolean]>([
		['where it ends before the turn', 20, 35, {}, true],
		['not where it would end later', 20, 36, {}, false],
		['at the beginning of a turn, where no turn is long enough', 10, 70, {}, true],
		['not later, where no turn is long enough', 20, 70, {}, false],
		['at any time, where the run is not active', 20, 70, { ageMs: HOUR }, true],
		["at any time, where the turn ends at 'Sleep After'", 20, 70, { ageMs: 4.5 * MINUTE }, true],
	])('%s', async (_when, at, seconds, begin, expected) => {
		looksIn(60);
		const { turn } = begun(begin);
		await pass(at * SECOND);
		expect(turn.hasTimeFor(seconds * SECOND)).toBe(expected);
	});
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
		const { turn, left } = begun({ ageMs: HOUR, orders: 1 });
		const seen = waits(turn, 200);
		await pass(10 * SECOND);
		expect(seen).toEqual({});
		happens(turn, left);
		await pass(1);
		expect(seen).toEqual({ at: 10, goesOn: false });
	});

	it('goes on at once where the turn is over, and the moment has not come', async () => {
		const { turn } = begun({ ageMs: HOUR });
		const seen = waits(turn, 1);
		await pass(1);
		expect(seen).toEqual({ at: 0, goesOn: false });
	});

	it('hears of a stop', async () => {
		const stop = new AbortController();
		const { turn } = begun({ signal: stop.signal });
		const seen = waits(turn, 3600);
		stop.abort();
		await pass(1);
		expect(seen.error).toBeInstanceOf(Stopped);
	});

	it.each([false, true])(
		'leaves no timer behind when the turn is closed (held: %s)',
		async (isHeld) => {
			const { turn } = begun(isHeld ? { suspendAfterMs: Infinity } : {});
			waits(turn, 3600);
			await pass(1);
			expect(time.timersLeft).toBe(1);
			turn.close();
			await pass(1);
			expect(time.timersLeft).toBe(0);
		},
	);
});

import { SuspendAfter } from '../../../nodes/MediaGeneration/wait/pollTask';
import { FakeClock } from '../support';
import { MINUTE } from '../../durations';

const [FIRST, SECOND] = [{}, {}];

/** A run that is held for so long after its last create. */
function held(afterMs: number, ...creates: object[]) {
	const clock = new FakeClock(7 * MINUTE);
	const suspendAfter = new SuspendAfter(clock, afterMs, creates);
	const isOverAfter = (ms: number) => {
		clock.pass(ms);
		return suspendAfter.isOver;
	};
	/** The item creates its last task. */
	const created = (item: object) => {
		suspendAfter.created();
		suspendAfter.close(item);
	};
	return { suspendAfter, isOverAfter, created };
}

describe('a run', () => {
	it('that creates nothing is held from its beginning on', () => {
		const { isOverAfter } = held(MINUTE);
		expect([isOverAfter(MINUTE - 1), isOverAfter(1)]).toEqual([false, true]);
	});

	it('is held until so long after its last create', () => {
		const { isOverAfter, created } = held(MINUTE, FIRST, SECOND);
		created(FIRST);
		expect(isOverAfter(10 * MINUTE)).toBe(false);
		created(SECOND);
		expect([isOverAfter(MINUTE - 1), isOverAfter(1)]).toEqual([false, true]);
	});

	it('is held while an item has not created its task, however long that takes', () => {
		const { isOverAfter, created } = held(0, FIRST, SECOND);
		created(FIRST);
		expect(isOverAfter(60 * MINUTE)).toBe(false);
		created(SECOND);
		expect(isOverAfter(0)).toBe(true);
	});

	it('is held while an item may create its task anew', () => {
		const { suspendAfter, isOverAfter, created } = held(MINUTE, FIRST);
		suspendAfter.created();
		expect(isOverAfter(60 * MINUTE)).toBe(false);
		// The task that it was created anew as is the last one.
		created(FIRST);
		expect([isOverAfter(0), isOverAfter(MINUTE)]).toEqual([false, true]);
	});

	it('is held no longer for an item that has come to its end', () => {
		const { suspendAfter, isOverAfter } = held(MINUTE, FIRST, SECOND);
		suspendAfter.created();
		suspendAfter.close(FIRST);
		expect(isOverAfter(MINUTE)).toBe(false);
		// One that was refused created no task at all.
		suspendAfter.close(SECOND);
		expect(isOverAfter(0)).toBe(true);
	});

	it('that stops creating is held for none of its items', () => {
		const { suspendAfter } = held(0, FIRST, SECOND);
		suspendAfter.closeAll();
		expect(suspendAfter.isOver).toBe(true);
	});

	it('that n8n does not suspend is held to its end', () => {
		const { suspendAfter, isOverAfter } = held(0);
		expect(suspendAfter.isOver).toBe(true);
		suspendAfter.switchOff();
		expect(isOverAfter(1e12)).toBe(false);
	});

	it('that cannot be suspended is held for ever', () => {
		expect(held(Infinity).isOverAfter(1e12)).toBe(false);
	});
});

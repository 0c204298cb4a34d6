import { Hold } from '../../../nodes/MediaGeneration/wait/hold';
import { FakeClock } from '../support';

const MINUTE = 60_000;
const [FIRST, SECOND] = [{}, {}];

describe('a run', () => {
	it('that creates nothing is held from its beginning on', () => {
		const clock = new FakeClock(7 * MINUTE);
		const hold = new Hold(clock, MINUTE, []);
		clock.pass(MINUTE - 1);
		expect(hold.isOver).toBe(false);
		clock.pass(1);
		expect(hold.isOver).toBe(true);
	});

	it('is held until so long after its last create', () => {
		const clock = new FakeClock();
		const hold = new Hold(clock, MINUTE, [FIRST, SECOND]);
		hold.created(FIRST, true);
		clock.pass(10 * MINUTE);
		hold.created(SECOND, true);
		clock.pass(MINUTE - 1);
		expect(hold.isOver).toBe(false);
		clock.pass(1);
		expect(hold.isOver).toBe(true);
	});

	it('is held while an item has not created its task, however long that takes', () => {
		const clock = new FakeClock();
		const hold = new Hold(clock, 0, [FIRST, SECOND]);
		hold.created(FIRST, true);
		clock.pass(60 * MINUTE);
		expect(hold.isOver).toBe(false);
		hold.created(SECOND, true);
		expect(hold.isOver).toBe(true);
	});

	it('is held while an item may create its task anew', () => {
		const clock = new FakeClock();
		const hold = new Hold(clock, MINUTE, [FIRST]);
		hold.created(FIRST, false);
		clock.pass(60 * MINUTE);
		expect(hold.isOver).toBe(false);
		// The task that it was created anew as is the last one.
		hold.created(FIRST, true);
		expect(hold.isOver).toBe(false);
		clock.pass(MINUTE);
		expect(hold.isOver).toBe(true);
	});

	it('is held no longer for an item that has come to its end', () => {
		const clock = new FakeClock();
		const hold = new Hold(clock, MINUTE, [FIRST, SECOND]);
		hold.created(FIRST, false);
		hold.close(FIRST);
		clock.pass(MINUTE);
		expect(hold.isOver).toBe(false);
		// One that was refused created no task at all.
		hold.close(SECOND);
		expect(hold.isOver).toBe(true);
	});

	it('that stops creating is held for none of its items', () => {
		const hold = new Hold(new FakeClock(), 0, [FIRST, SECOND]);
		hold.closeAll();
		expect(hold.isOver).toBe(true);
	});

	it('that n8n does not suspend is held to its end', () => {
		const clock = new FakeClock();
		const hold = new Hold(clock, 0, []);
		expect(hold.isOver).toBe(true);
		hold.forever();
		clock.pass(1e12);
		expect(hold.isOver).toBe(false);
	});

	it('that cannot be suspended is held for ever', () => {
		const clock = new FakeClock();
		const hold = new Hold(clock, Infinity, []);
		clock.pass(1e12);
		expect(hold.isOver).toBe(false);
	});
});

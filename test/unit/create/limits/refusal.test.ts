import { Refusal } from '../../../../nodes/MediaGeneration/create/limits/refusal';

it('a rhythm in which one was let in is given up where it is refused again and again', () => {
	const refusal = new Refusal(0, 1, Infinity, 2200);
	refusal.again({ unfinished: 1 }, 1, 0);
	// The first look lets one in, though no task is known to have ended.
	refusal.letIn(200, 1, false);
	let now = 200;
	let refusals = 0;
	while (now < 20_000) {
		refusal.again({ unfinished: 1 }, 1, now);
		refusals++;
		const around = {
			begunAt: 0,
			wasPlaces: false,
			isSmall: true,
			isUnseen: false,
			leastPauseMs: 0,
			chance: 0.5,
		};
		now = refusal.nextLook(now, 1, around);
	}
	expect(refusals).toBeLessThan(12);
});

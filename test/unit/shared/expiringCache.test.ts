import { ExpiringCache } from '../../../nodes/MediaGeneration/shared/clock';
import { FakeClock } from '../support';

it('remembers under each key what was said last, until it is deleted', () => {
	const memory = new ExpiringCache<number>(new FakeClock(), 1000, 10);
	memory.set('a', 1);
	memory.set('a', 2);
	expect([memory.get('a'), memory.get('b')]).toEqual([2, undefined]);
	memory.delete('a');
	expect(memory.get('a')).toBeUndefined();
});

it('forgets what is old, and counts its age from the last time that it was said', () => {
	const clock = new FakeClock();
	const memory = new ExpiringCache<number>(clock, 1000, 10);
	memory.set('a', 1);
	memory.set('b', 1);
	clock.pass(999);
	memory.set('a', 1);
	clock.pass(1);
	expect([memory.get('a'), memory.get('b')]).toEqual([1, undefined]);
});

it('forgets the oldest first where there are too many', () => {
	const memory = new ExpiringCache<number>(new FakeClock(), 1000, 2);
	for (const key of ['a', 'b', 'a', 'c']) memory.set(key, 1);
	expect(['a', 'b', 'c'].map((key) => memory.get(key))).toEqual([1, undefined, 1]);
});

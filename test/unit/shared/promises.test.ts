import { Semaphore } from '../../../nodes/MediaGeneration/shared/promises';
import { tick } from '../../virtualTime';

it('does so much at once and no more, in order', async () => {
	const lane = new Semaphore(2);
	const begun: number[] = [];
	const ends: Array<() => void> = [];
	const work = (index: number) => async () => {
		begun.push(index);
		await new Promise<void>((resolve) => ends.push(resolve));
		return index;
	};
	const all = Promise.all([1, 2, 3, 4].map(async (index) => await lane.run(work(index))));
	await tick();
	expect(begun).toEqual([1, 2]);
	ends[1]?.();
	await tick();
	expect(begun).toEqual([1, 2, 3]);
	for (const index of [0, 2]) ends[index]?.();
	await tick();
	ends[3]?.();
	expect(await all).toEqual([1, 2, 3, 4]);
});

it('goes on after what throws', async () => {
	const lane = new Semaphore(1);
	const failed = lane.run(async () => await Promise.reject(new Error('No')));
	const next = lane.run(async () => await Promise.resolve('next'));
	await expect(failed).rejects.toThrow('No');
	expect(await next).toBe('next');
});

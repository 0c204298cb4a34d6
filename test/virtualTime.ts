import { install } from '@sinonjs/fake-timers';

/** When virtual time begins: 1 January 2026. */
export const EPOCH = Date.UTC(2026, 0, 1);

/** Lets everything happen that needs no time to pass, but for requests. */
export const tick = async () => await new Promise<void>((resolve) => void setImmediate(resolve));

/**
 * The time of this process, in place of the real one: it passes only where it is told to. Replaced are timers, dates and
 * the clock that only runs forward; what sockets and streams run on is left alone.
 */
export class VirtualTime {
	protected readonly clock: ReturnType<typeof install>;

	constructor(now = EPOCH) {
		const timers = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] as const;
		this.clock = install({ now, toFake: [...timers, 'Date', 'performance'] });
	}

	/** The wall clock: milliseconds since 1970. */
	get wall(): number {
		return this.clock.now;
	}

	/** Sets the wall clock. What is to happen later happens after as long a time as before. */
	setWall(wall: number): void {
		this.clock.setSystemTime(wall);
	}

	/** Lets so many milliseconds pass, with all that happens in them. */
	async pass(ms: number): Promise<void> {
		await this.clock.tickAsync(ms);
	}

	/** Lets so many milliseconds pass at once: what waits for a timer goes on when this is over. */
	jump(ms: number): void {
		this.clock.tick(ms);
	}

	/** Lets time pass until the next timer goes off. */
	async next(): Promise<void> {
		await this.clock.nextAsync();
	}

	/** The real time is back. */
	end(): void {
		this.clock.uninstall();
	}
}

/** A number from 0 to 1 that belongs to a name: it stays the same when other things of a history change. */
export class Randomness {
	constructor(private readonly seed: number) {}

	/** @returns from 0 (inclusive) to 1 (exclusive) */
	of(...name: Array<string | number>): number {
		let hash = (this.seed ^ 0x9e3779b9) >>> 0;
		const text = name.join('/');
		for (let index = 0; index < text.length; index++) {
			hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0;
		}
		return mix(hash) / 2 ** 32;
	}

	/** @returns a whole number between two bounds, both inclusive */
	between(from: number, to: number, ...name: Array<string | number>): number {
		return from + Math.floor(this.of(...name) * (to - from + 1));
	}

	/** In place of `Math.random`. */
	stream(): () => number {
		let state = this.seed >>> 0;
		return () => {
			state = (state + 0x6d2b79f5) >>> 0;
			return mix(state) / 2 ** 32;
		};
	}
}

function mix(value: number): number {
	let bits = value;
	bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
	bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
	return (bits ^ (bits >>> 16)) >>> 0;
}

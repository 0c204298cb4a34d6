import type { N8n } from './n8n';
import type { World } from './world';

/** A part of the model of n8n. */
export abstract class Part {
	constructor(protected readonly world: World) {}

	/** The other parts. */
	protected get n8n(): N8n {
		return this.world.n8n;
	}
}

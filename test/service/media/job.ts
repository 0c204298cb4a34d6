/** What the worker is asked to draw; all of it can be posted between threads. */
export interface DrawJob {
	readonly kind: 'image' | 'video';
	/** The text in large type. */
	readonly title: string;
	/** The line below it. */
	readonly caption: string;
	/** Decides the colours: the same seed gives the same picture. */
	readonly seed: string;
	/** Length of a video. */
	readonly seconds: number;
	/** A PNG or JPEG file to draw on instead of the gradient. */
	readonly background?: Uint8Array;
}

export type WorkerRequest = { readonly id: number; readonly job: DrawJob };
export type WorkerAnswer =
	| { readonly id: number; readonly file: Uint8Array }
	| { readonly id: number; readonly error: string };

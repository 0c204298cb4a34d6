import { kindOf, videoSeconds } from '../prices';
import type { SimulatedTask, TaskStore } from '../tasks';
import type { DrawJob } from './job';
import type { Studio } from './studio';

const DATA_URI = /^data:image\/(?:png|jpe?g);base64,/i;
const OWN_PICTURE = /^https?:\/\/[^/]+\/media\/([^/]+)\/(\d+)\.png$/;

/** The results of tasks as files. */
export class Results {
	constructor(
		private readonly studio: Studio,
		private readonly store: TaskStore,
	) {}

	/** Whether a task has a result with this number, counted from 1. */
	has(task: SimulatedTask, number: number): boolean {
		return task.record.state === 'SUCCESS' && number >= 1 && number <= task.resultCount;
	}

	file(task: SimulatedTask, number: number): Promise<Buffer> {
		return this.studio.file(`${task.taskId} ${number}`, () => this.job(task, number));
	}

	private async job(task: SimulatedTask, number: number): Promise<DrawJob> {
		const { record, resultCount } = task;
		const { model, input } = record;
		const title = typeof input.prompt === 'string' ? input.prompt : model;
		const caption = resultCount > 1 ? `${model}  ·  ${number} of ${resultCount}` : model;
		return {
			kind: kindOf(model),
			title,
			caption,
			seed: `${title} ${number}`,
			seconds: videoSeconds(input),
			background: await this.referenceImage(input),
		};
	}

	/**
	 * The first picture among the values of an input: the specification does not show which field
	 * carries it (section 4.1). Only a data URI and a result of this service are read; the service
	 * calls nobody else's address.
	 */
	private async referenceImage(input: Readonly<Record<string, unknown>>) {
		for (const value of Object.values(input).flat()) {
			if (typeof value !== 'string') continue;
			if (DATA_URI.test(value)) return Buffer.from(value.replace(DATA_URI, ''), 'base64');
			const [, taskId = '', number] = OWN_PICTURE.exec(value) ?? [];
			const task = this.store.tasks.get(taskId);
			if (task && this.has(task, Number(number))) return await this.file(task, Number(number));
		}
		return undefined;
	}
}

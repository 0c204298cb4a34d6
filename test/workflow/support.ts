import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { type LoggedRequest, type SimulatedService, startService } from '../service/service';
import { EPOCH } from '../virtualTime';
import {
	type Credential,
	type Ran,
	startWorkflow,
	type TestNode,
	type TestWorkflow,
} from './engine';
import { passTime, settle, time, virtualTime } from './time';

export { MINUTE, SECOND } from '../durations';

/** Settings of a node that n8n has for every node. */
export const keepsGoing = { onError: 'continueRegularOutput' as const };
export const hasErrorOutput = { onError: 'continueErrorOutput' as const };
export const threeTries = { retryOnFail: true, maxTries: 3, waitBetweenTries: 100 };

export const IMAGE_MODEL = 'imagevendor/image-model-2-text-to-image';
export const VIDEO_MODEL = 'videovendor/video-model-2-mini';

/** The service, and workflows that use it, for the tests of one file. */
export class Stage {
	/** The running service. */
	service!: SimulatedService;

	/** The parts of a workflow that all tests share. */
	workflow(node: TestNode, items?: INodeExecutionData[]): TestWorkflow {
		return { node, credential: this.credential, ...(items && { items }) };
	}

	get credential(): Credential {
		const { url: baseUrl, apiKey } = this.service;
		return { baseUrl, apiKey };
	}

	/** Runs a workflow to its end, however long that takes on its clock. */
	async run(
		node: TestNode,
		items?: INodeExecutionData[],
		more: Partial<TestWorkflow> = {},
	): Promise<Ran> {
		return await passTime(startWorkflow({ ...this.workflow(node, items), ...more }).result);
	}

	/** Runs a workflow until a condition holds, and stops the execution then. */
	async stopWhen(condition: () => boolean, ...given: Parameters<typeof startWorkflow>) {
		const { execution, result } = startWorkflow(...given);
		while (!condition()) {
			await settle();
			await time.next();
		}
		await settle();
		const stoppedAt = Date.now();
		execution.cancel();
		return { ...(await passTime(result)), stoppedAt };
	}

	/** What was asked of the service's API, oldest first. */
	requests(method: string, path = '/api/'): LoggedRequest[] {
		return this.service.requests.filter(
			(request) =>
				request.host === 'api' && request.method === method && request.path.includes(path),
		);
	}

	get creates(): LoggedRequest[] {
		return this.requests('POST', '/api/generate');
	}

	/** Runs an image for each prompt. */
	async images(
		items: Parameters<typeof prompts>,
		options: IDataObject = {},
		node: TestNode = {},
		more: Partial<TestWorkflow> = {},
	): Promise<Ran> {
		return await this.run(imageNode(options, node), prompts(...items), more);
	}

	/** A task that somebody else has created, and that has ended. */
	finishedTask(outcome?: 'FAILURE'): string {
		const { taskId } = this.service.createTask(IMAGE_MODEL, { prompt: 'A' });
		this.service.complete(taskId, outcome);
		return taskId;
	}

	/** The tasks that the service has, oldest first. */
	get tasks() {
		return [...this.service.tasks.values()];
	}

	/** The inputs that reached the service, oldest first. */
	get inputs() {
		return this.tasks.map(({ record }) => record.input);
	}

	/** The first task of a prompt. */
	taskOf(prompt: string): string {
		return this.tasks.find(({ record }) => record.input.prompt === prompt)?.taskId ?? '';
	}

	/** Milliseconds since the test began. */
	get elapsed(): number {
		return Date.now() - EPOCH;
	}

	/** The ids of the created tasks, oldest first. */
	get taskIds(): string[] {
		return [...this.service.tasks.keys()];
	}
}

/** Starts the service for a test file; every test begins with no tasks, at the same fake time. */
export function stage(): Stage {
	const shared = new Stage();
	beforeAll(async () => {
		// Nobody listens at n8n's address in these tests.
		shared.service = await startService({ settings: { latencyMs: 0, callbackLost: true } });
	});
	virtualTime();
	afterEach(() => {
		shared.service.resetSettings();
		shared.service.clear();
	});
	afterAll(async () => await shared.service.close());
	return shared;
}

/** Items with a prompt each; `simulate` sets the switches of that task alone. */
export const prompts = (...items: Array<string | { prompt: string; simulate: IDataObject }>) =>
	items.map((item): INodeExecutionData => ({
		json: typeof item === 'string' ? { prompt: item, simulate: {} } : { ...item },
	}));

/** A prompt whose task does as the switches say. */
export const item = (prompt: string, simulate: object) => ({
	prompt,
	simulate: simulate as IDataObject,
});

/** An image for each item of `prompts`. */
export const imageNode = (options: IDataObject = {}, more: TestNode = {}): TestNode => ({
	...more,
	parameters: {
		prompt: '={{ $json.prompt }}',
		options: {
			additionalInput: '={{ JSON.stringify({ simulate: $json.simulate }) }}',
			...options,
		},
		...more.parameters,
	},
});

/** One field of every item. */
export const field = (items: INodeExecutionData[], name: string) =>
	items.map(({ json }) => json[name]);

/** The description of an error, where n8n shows what to do next. */
export function descriptionOf({ error }: Ran): string {
	return error && 'description' in error ? String(error.description) : '';
}

/** What n8n shows above the output of the node. */
export const hintsOf = ({ run }: Ran) =>
	(run.data.resultData.runData.Media ?? []).flatMap(({ hints = [] }) =>
		hints.map(({ message }) => message),
	);

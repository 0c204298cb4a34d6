import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { MINUTE, SECOND } from '../durations';
import { type LoggedRequest, type SimulatedService, startService } from '../service/service';
import type { Settings } from '../service/settings';
import { EPOCH } from '../virtualTime';
import {
	type Credential,
	type Ran,
	startWorkflow,
	type TestNode,
	type TestWorkflow,
} from './engine';
import { type StoredRun, WorkflowN8n } from './n8n/workflowN8n';
import { useProcessedData } from './processedData';
import { passTime, virtualTime } from './time';

export { MINUTE, SECOND };

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

	/** Starts a workflow in an n8n that stores it. */
	begin(node: TestNode, items?: INodeExecutionData[], more: Partial<TestWorkflow> = {}): StoredRun {
		return new WorkflowN8n({ ...this.workflow(node, items), ...more }).begin();
	}

	/** The same, and waits until the run sleeps or is at its end. */
	async start(...given: Parameters<Stage['begin']>): Promise<StoredRun> {
		return await this.begin(...given).rests();
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

	/** How many tasks the service has taken. */
	get created(): number {
		return this.creates.filter(({ status }) => status === 200).length;
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

	/** The prompts of the tasks, oldest first. */
	get ordered(): string[] {
		return this.inputs.map(({ prompt }) => String(prompt));
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
	useProcessedData();
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

/** A prompt, and the switches of its task alone. */
export const item = (prompt: string, simulate: Settings) => ({ prompt, simulate });

/** So many prompts, each of whose tasks takes so long. */
export const many = (count: number, latencyMs: NonNullable<Settings['latencyMs']>) =>
	Array.from({ length: count }, (_, index) => item(`p${index}`, { latencyMs }));

/** A prompt whose task fails. */
export const fails = (prompt: string, more: Settings = {}) =>
	item(prompt, { outcome: 'FAILURE', failureMessage: 'Unsafe prompt.', ...more });

/** Items with a prompt each. */
export const prompts = (...items: Array<string | ReturnType<typeof item>>) =>
	items.map((each): INodeExecutionData => {
		const json = typeof each === 'string' ? item(each, {}) : each;
		return { json: { ...json } as IDataObject };
	});

/** An image for each item of `prompts`. Its file is downloaded only where the options say so. */
export const imageNode = (
	{ downloadResults = false, includeInput = true, ...options }: IDataObject = {},
	more: TestNode = {},
): TestNode => ({
	...more,
	parameters: {
		prompt: '={{ $json.prompt }}',
		downloadResults,
		includeInput,
		options: {
			additionalInput: '={{ JSON.stringify({ simulate: $json.simulate }) }}',
			...options,
		},
		...more.parameters,
	},
});

export const jsonOf = (items: INodeExecutionData[]) => items.map(({ json }) => json);

/** One field of every item. */
export const field = (items: INodeExecutionData[], name: string) =>
	jsonOf(items).map((json) => json[name]);

/** The items that failed. */
export const errorsOf = (items: INodeExecutionData[]) => field(items, 'error').filter(Boolean);

/** The items of which nobody knows whether they have a task. */
export const inDoubt = (items: INodeExecutionData[]) =>
	errorsOf(items).filter((error) => String(error).startsWith('It is not known'));

/** Images that take so many seconds each. */
export const images = (count: number, seconds: number) => prompts(...many(count, seconds * SECOND));

/** Any text with this in it. */
export const text = (part: string) => expect.stringContaining(part) as string;

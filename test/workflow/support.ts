import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { type LoggedRequest, type SimulatedService, startService } from '../service/service';
import {
	type Credential,
	type Ran,
	startWorkflow,
	type TestNode,
	type TestWorkflow,
} from './engine';
import { fakeTime, passTime } from './time';

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

	/** The ids of the created tasks, oldest first. */
	get taskIds(): string[] {
		return [...this.service.tasks.keys()];
	}
}

/** Starts the service for a test file; every test begins with no tasks, at the same fake time. */
export function stage(): Stage {
	const shared = new Stage();
	beforeAll(async () => {
		shared.service = await startService({ settings: { latencyMs: 0 } });
	});
	beforeEach(() => fakeTime());
	afterEach(() => {
		shared.service.resetSettings();
		shared.service.clear();
		jest.useRealTimers();
	});
	afterAll(async () => await shared.service.close());
	return shared;
}

/** Items with a prompt each; `simulate` sets the switches of that task alone. */
export const prompts = (...items: Array<string | { prompt: string; simulate: IDataObject }>) =>
	items.map((item): INodeExecutionData => ({
		json: typeof item === 'string' ? { prompt: item, simulate: {} } : { ...item },
	}));

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

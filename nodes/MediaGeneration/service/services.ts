import type { IDataObject } from 'n8n-workflow';

/**
 * How a service differs from the specification: addresses and names, and no code. Paths are below the base URL.
 *
 * Placeholders: `{model}`; the part of the model before its last `/` (`{kind}`) and behind it (`{name}`), and its first two
 * parts (`{app}`); `{input}`, `{callback}`, `{taskId}`; `{key}`, in headers only. Any other name is that of a field of the
 * input, such as `{prompt}`. What has no value is left out.
 */
export interface Service {
	/** The base URL, if the credential has none. */
	base: string;
	/** The path of a create. */
	create: string;
	/** The path of a task's record. If it has a part of the model, ids of tasks begin with the model. */
	read: string;
	/** The path of the result, if the record of a success has none. */
	result: string;
	/** The path of the balance. With `{taskId}` there is none: the credential's test asks for a task that cannot be. */
	balance: string;
	/** The body of a create. `'...': '{input}'` stands for the fields of the input that the body does not name. */
	body: IDataObject;
	/** Sent with each request. */
	headers: Record<string, string>;
	/** The names of a task's id, if the specification does not have them. */
	id: string[];
	/** The name of the state. */
	state: string;
	/** The names of the results, most telling first, with commas; or the path of the only result. */
	results: string;
}

/** The row of the specification, sections 4 and 5. Other rows say what differs. */
export const SPECIFICATION: Service = {
	base: '',
	create: '/api/generate',
	read: '/api/generate/{taskId}',
	result: '',
	balance: '/api/credits',
	body: { model: '{model}', input: '{input}', webhook_url: '{callback}' },
	headers: { Authorization: 'Bearer {key}' },
	id: [],
	state: 'state',
	results: 'resultUrls',
};

/** The rows by the values of the credential's field *Service*. docs/services.md names the source of each. */
export const SERVICES: Record<string, Partial<Service>> = {
	'': {},
	kie: {
		base: 'https://api.kie.ai',
		create: '/api/v1/jobs/createTask',
		read: '/api/v1/jobs/recordInfo?taskId={taskId}',
		balance: '/api/v1/chat/credit',
		body: { model: '{model}', input: '{input}', callBackUrl: '{callback}' },
	},
	replicate: {
		base: 'https://api.replicate.com/v1',
		create: '/predictions',
		read: '/predictions/{taskId}',
		balance: '/account',
		body: {
			version: '{model}',
			input: '{input}',
			webhook: '{callback}',
			webhook_events_filter: ['completed'],
		},
		state: 'status',
		results: 'output',
	},
	wavespeed: {
		base: 'https://api.wavespeed.ai/api/v3',
		create: '/{model}?webhook={callback}',
		read: '/predictions/{taskId}/result',
		balance: '/balance',
		body: { image: '{image_url}', '...': '{input}' },
		state: 'status',
		results: 'outputs',
	},
	deapi: {
		base: 'https://api.deapi.ai/api/v2',
		create: '/{kind}',
		read: '/jobs/{taskId}',
		balance: '/account/balance',
		body: { model: '{name}', '...': '{input}', webhook_url: '{callback}' },
		id: ['request_id', 'job_request_id'],
		state: 'status',
		results: 'result_url',
	},
	luma: {
		base: 'https://api.lumalabs.ai/dream-machine/v1',
		create: '/generations/{kind}',
		read: '/generations/{taskId}',
		balance: '/credits',
		body: {
			model: '{name}',
			keyframes: { frame0: { type: 'image', url: '{image_url}' } },
			duration: '{duration}s',
			'...': '{input}',
			callback_url: '{callback}',
		},
		results: 'video,image',
	},
	runway: {
		base: 'https://api.dev.runwayml.com/v1',
		create: '/{kind}',
		read: '/tasks/{taskId}',
		balance: '/organization',
		body: {
			model: '{name}',
			promptText: '{prompt}',
			promptImage: '{image_url}',
			'...': '{input}',
		},
		headers: { Authorization: 'Bearer {key}', 'X-Runway-Version': '2024-11-06' },
		state: 'status',
		results: 'output',
	},
	bfl: {
		base: 'https://api.us1.bfl.ai/v1',
		create: '/{model}',
		read: '/get_result?id={taskId}',
		balance: '/credits',
		body: { input_image: '{image_url}', '...': '{input}', webhook_url: '{callback}' },
		headers: { 'x-key': '{key}' },
		state: 'status',
		results: 'sample,result',
	},
	ark: {
		base: 'https://ark.cn-beijing.volces.com/api/v3',
		create: '/contents/generations/tasks',
		read: '/contents/generations/tasks/{taskId}',
		balance: '/contents/generations/tasks?page_size=1',
		body: {
			model: '{model}',
			content: [
				{ type: 'text', text: '{prompt}' },
				{ type: 'image_url', image_url: { url: '{image_url}' } },
			],
			'...': '{input}',
			callback_url: '{callback}',
		},
		state: 'status',
		results: 'video_url,content',
	},
	openai: {
		base: 'https://api.openai.com/v1',
		create: '/videos',
		read: '/videos/{taskId}',
		balance: '/models',
		body: {
			model: '{model}',
			seconds: '{duration}',
			input_reference: { image_url: '{image_url}' },
			'...': '{input}',
		},
		state: 'status',
		results: '/videos/{taskId}/content',
	},
	fal: {
		base: 'https://queue.fal.run',
		create: '/{model}?fal_webhook={callback}',
		read: '/{app}/requests/{taskId}/status',
		result: '/{app}/requests/{taskId}',
		balance: '/fal-ai/flux/requests/{taskId}/status',
		body: { '...': '{input}' },
		headers: { Authorization: 'Key {key}' },
		id: ['request_id'],
		state: 'status',
		results: 'video,images,image,audio',
	},
	segmind: {
		base: 'https://api.segmind.com',
		create: '/v2/{model}',
		read: '/v2/requests/{taskId}',
		balance: '/v1/get-user-credits',
		body: { '...': '{input}' },
		headers: { 'x-api-key': '{key}' },
		id: ['request_id'],
		state: 'status',
		results: 'output',
	},
};

import {
	type IAuthenticate,
	type ICredentialDataDecryptedObject,
	type ICredentialTestRequest,
	type ICredentialType,
	type IHttpRequestOptions,
	type IgnoreStatusErrorConfig,
	type INodeProperties,
	type Icon,
	UserError,
} from 'n8n-workflow';
import { hasBalance, headersOf, testPath } from '../nodes/MediaGeneration/service/door';
import { readInputExample } from '../nodes/MediaGeneration/service/inputExample';
import { readModels } from '../nodes/MediaGeneration/service/money';
import { isBelow, readAccount } from '../nodes/MediaGeneration/service/readService';
import { SPECIFICATION } from '../nodes/MediaGeneration/service/services';
import { anyOf, settled } from '../nodes/MediaGeneration/shared/clock';
import { ItemError } from '../nodes/MediaGeneration/shared/itemError';

/**
 * n8n's HTTP Request node calls the address `uri`, also in the requests for further pages. The package's own requests have
 * a signal for when the time of the answer is up.
 */
type Request = IHttpRequestOptions & { uri?: string; giveUp?: AbortSignal };

/**
 * The whole address of a request, as n8n's HTTP library puts it together.
 *
 * @param base goes before an address without a host
 */
function wholeAddress(address: string, base: string): string {
	if (/^([a-z][a-z\d+.-]*:)?\/\//i.test(address)) return address;
	return base.replace(/(?<!\/)\/+$/, '') + address.replace(/^\/*(?=.)/, '/');
}

/**
 * Adds the API key to a request to the service, and refuses to add it to any other request. It is a function and not a
 * template, because the HTTP Request node offers this credential, too, and must not send the key to another host.
 *
 * @returns the request with the key. It follows no redirect, and a stop of the execution does not cancel a create.
 * @throws UserError if the credential cannot be used, or the request goes to another address
 * @see docs/service.openapi.yaml, section 5
 */
async function authenticate(
	credentials: ICredentialDataDecryptedObject,
	request: Request,
): Promise<IHttpRequestOptions> {
	const read = await settled(async () => readAccount(credentials));
	if ('error' in read) {
		// The credential's dialog shows the message only, so the message includes the next step.
		const { message, description } = ItemError.from(read.error);
		throw new UserError(`${message}. ${description}`);
	}
	const { service, baseUrl, apiKey } = read.value;
	const isTest = request.headers?.[CHECK] !== undefined;
	if (isTest) checkExamples(credentials.models);
	const { baseURL, uri, url: asked, abortSignal, giveUp, ...options } = request;
	// The declaration of the test cannot know the service.
	const given = isTest ? baseUrl + testPath(service) : asked;
	const whole = wholeAddress(String(given || (uri ?? '')).trim(), baseURL?.trim() || baseUrl);
	const url = URL.canParse(whole) ? new URL(whole) : undefined;
	const target = url ? url.origin + url.pathname : whole;
	if (url === undefined || !isBelow(baseUrl, url)) {
		throw new UserError(
			`The API key of this credential is sent to ${baseUrl} only, not to ${target}. Use a credential of that service instead`,
		);
	}
	// n8n's cancel signal would cancel a create that the service may have taken: nobody would learn its task id.
	const stop = request.method === 'POST' ? undefined : (abortSignal as AbortSignal | undefined);
	const signal = giveUp ? anyOf(giveUp, stop) : stop;
	const own = headersOf(service, apiKey);
	const names = ['authorization', CHECK, ...Object.keys(own).map((name) => name.toLowerCase())];
	const headers = Object.entries(request.headers ?? {}).filter(
		([name]) => !names.includes(name.toLowerCase()),
	);
	return {
		...options,
		url: url.href,
		...(signal && { abortSignal: signal }),
		disableFollowRedirect: true,
		// The older interface, which the HTTP Request node uses, has these two names for it; the type of n8n has neither.
		...{ followRedirect: false, followAllRedirects: false },
		...(isTest && !hasBalance(service) && { ignoreHttpStatusErrors: NO_SUCH_TASK }),
		headers: { ...Object.fromEntries(headers), ...own },
	};
}

/** That there is no such task is a good answer to a test with a task that cannot be; these answers are none. */
const NO_SUCH_TASK: IgnoreStatusErrorConfig = {
	ignore: true,
	except: [301, 302, 303, 307, 308, 401, 403, 429, 500, 502, 503, 504],
};

/** A header of the credential's test, which is not sent: the test alone checks what was pasted. */
const CHECK = 'x-check-input-examples';

/** @throws UserError if the input example of a model cannot be read */
function checkExamples(models: unknown): void {
	for (const { id, inputExample } of readModels(models)) {
		try {
			readInputExample(inputExample);
		} catch (error) {
			const { message, description = '' } = ItemError.from(error);
			throw new UserError(`The input example of '${id}' ${message}. ${description}`);
		}
	}
}

const NOT_THE_SERVICE =
	"This 'Service' does not answer at this 'Base URL'. The 'Base URL' is the part of the address before the paths of the service";

const MESSAGES: Array<[statuses: number[], message: string]> = [
	[
		[301, 302, 303, 307, 308],
		"The 'Base URL' redirects to another address, to which the API key is not sent. Enter that address instead",
	],
	[
		[401],
		"The service does not accept this 'API Key' (401). Copy the key again from your account at this service",
	],
	[
		[403],
		"The service refuses this 'API Key' (403). Check in your account at this service that the key is active and may use the API",
	],
	[[404, 405, 410], NOT_THE_SERVICE],
	[
		[429, 500, 502, 503, 504],
		'The service is reachable but cannot answer at present. Try again in a moment',
	],
];

/** n8n accepts both kinds of rules in one list, which its type does not allow. */
const testRules = [
	...MESSAGES.flatMap(([statuses, message]) =>
		statuses.map((value) => ({ type: 'responseCode', properties: { value, message } })),
	),
	// Many services answer everything with 200, and put the true status into the body.
	...MESSAGES.filter(([[status]]) => status === 401 || status === 403).flatMap(
		([[status], message]) =>
			[status, String(status)].flatMap((value) =>
				['code', 'status', 'statusCode'].map((key) => ({
					type: 'responseSuccessBody',
					properties: { key, value, message },
				})),
			),
	),
	// Many sites answer any address with a web page and status 200, which would pass for the service.
	{
		type: 'responseSuccessBody',
		properties: { key: 'constructor.name', value: 'String', message: NOT_THE_SERVICE },
	},
] as ICredentialTestRequest['rules'];

/** The address of the service, the API key, and the models of the account. n8n adds the key to requests with it. */
export class MediaGenerationApi implements ICredentialType {
	name = 'mediaGenerationApi';

	displayName = 'Media Generation API';

	icon: Icon = {
		light: 'file:../nodes/MediaGeneration/mediaGeneration.svg',
		dark: 'file:../nodes/MediaGeneration/mediaGeneration.dark.svg',
	};

	documentationUrl =
		'https://docs.n8n.io/integrations/community-nodes/installation/gui-install/#credentials';

	properties: INodeProperties[] = [
		{
			displayName: 'Service',
			name: 'service',
			type: 'options',
			default: '',
			description: 'Whose interface the service has',
			options: [
				{ name: 'Black Forest Labs (FLUX)', value: 'bfl' },
				{ name: 'deAPI', value: 'deapi' },
				{ name: 'fal', value: 'fal' },
				{ name: 'kie.ai', value: 'kie' },
				{ name: 'Luma Dream Machine', value: 'luma' },
				{ name: 'Media Generation API', value: '' },
				{ name: 'OpenAI Videos, or the Same Interface', value: 'openai' },
				{ name: 'Other', value: 'other' },
				{ name: 'Replicate', value: 'replicate' },
				{ name: 'Runway', value: 'runway' },
				{ name: 'Segmind', value: 'segmind' },
				{ name: 'Volcengine or BytePlus Ark (Seedance)', value: 'ark' },
				{ name: 'WaveSpeed', value: 'wavespeed' },
			],
		},
		{
			displayName: 'Interface',
			name: 'interface',
			type: 'string',
			typeOptions: { rows: 12 },
			displayOptions: { show: { service: ['other'] } },
			default: JSON.stringify({ ...SPECIFICATION, base: 'https://api.example.com' }, null, 2),
			description:
				"The service's addresses and names in JSON. The package's page on services has rows to paste here.",
		},
		{
			displayName: 'Base URL',
			name: 'baseUrl',
			type: 'string',
			displayOptions: { show: { service: [''] } },
			default: '',
			required: true,
			placeholder: 'e.g. https://api.example.com',
			hint: 'Without /api/generate. If the test says ECONNREFUSED, ENOTFOUND or ETIMEDOUT: check the host and the port.',
			description:
				'Address of the media generation service, up to but not including /api/generate. The API key is sent nowhere else.',
		},
		{
			displayName: 'API Key',
			name: 'apiKey',
			type: 'string',
			typeOptions: { password: true },
			default: '',
			required: true,
			description: 'Key of your account at the service',
		},
		{
			displayName: 'Models',
			name: 'models',
			type: 'fixedCollection',
			typeOptions: { multipleValues: true, sortable: true },
			placeholder: 'Add Model',
			default: {},
			description:
				"Models of your account. The field 'Model' of the nodes lists them, and the nodes know their prices.",
			options: [
				{
					displayName: 'Model',
					name: 'model',
					values: [
						{
							displayName: 'Model ID',
							name: 'id',
							type: 'string',
							default: '',
							placeholder: 'e.g. provider/model-name',
							description: "Identifier of the model, as the service's documentation has it",
						},
						{
							displayName: 'Price (USD)',
							name: 'priceUsd',
							type: 'number',
							typeOptions: { minValue: 0 },
							default: 0,
							description:
								'What one task, or one second, costs. 0 means that the price is not known.',
						},
						{
							displayName: 'Price Per',
							name: 'unit',
							type: 'options',
							default: 'task',
							options: [
								{ name: 'Task', value: 'task', description: 'One image or one video' },
								{
									name: 'Second of Video',
									value: 'second',
									description: 'The nodes multiply the price by the duration',
								},
							],
						},
						{
							displayName: 'Example or Schema of the Input',
							name: 'inputExample',
							type: 'string',
							typeOptions: { rows: 4 },
							default: '',
							placeholder: 'e.g. { "prompt": "", "aspect_ratio": "16:9" }',
							description:
								"The model's input as its documentation shows it: an example in JSON, or its JSON Schema. The nodes then show the fields by name.",
						},
					],
				},
			],
		},
		{
			displayName: 'Base URL',
			name: 'baseUrl',
			type: 'string',
			displayOptions: { hide: { service: [''] } },
			default: '',
			placeholder: 'e.g. https://api.example.com/v1',
			hint: 'Leave it empty, unless the service has another address for you: a region, a proxy, a service with the same interface',
			description:
				'Takes the place of the address that the service has in this package. The API key is sent nowhere else.',
		},
	];

	authenticate: IAuthenticate = authenticate;

	/** Reads the credits, so that a wrong key shows at once. */
	test: ICredentialTestRequest = {
		request: {
			baseURL: '={{$credentials.baseUrl}}',
			url: '/api/credits',
			headers: { [CHECK]: 'true' },
		},
		rules: testRules,
	};
}

import { ServiceError } from './errors';
import { isObject, parseSettings, type Settings } from './settings';

/** The two models of section 1. Others exist behind the same endpoint; their name tells their kind. */
const KNOWN_MODELS = ['imagevendor/image-model-2-text-to-image', 'videovendor/video-model-2-mini'];

/** A request to create a task (section 4.1), checked. */
export interface CreateRequest {
	model: string;
	input: Readonly<Record<string, unknown>>;
	webhookUrl?: string;
	own: Settings;
}

const isHttpUrl = (value: unknown): value is string =>
	typeof value === 'string' && URL.canParse(value) && /^https?:/i.test(value);

const invalid = (message: string) => new ServiceError(400, 'invalid_request', message);

/** Checks the body of a create request (section 4.1). */
export function parseCreate(body: unknown): CreateRequest {
	if (!isObject(body)) throw invalid('The body must be a JSON object.');
	const { model, input, webhook_url: webhookUrl } = body;
	if (typeof model !== 'string' || !/^[^/\s]+\/\S+$/.test(model)) {
		throw invalid('"model" must be a string of the form <provider>/<model-name>.');
	}
	if (!isObject(input)) throw invalid('"input" must be an object.');
	if (KNOWN_MODELS.includes(model) && typeof input.prompt !== 'string') {
		throw invalid(`"input.prompt" must be a string for ${model}.`);
	}
	if (webhookUrl !== undefined && !isHttpUrl(webhookUrl)) {
		throw invalid('"webhook_url" must be an http or https address.');
	}
	const own = isObject(input.simulate) ? parseSettings(input.simulate) : {};
	return { model, input, webhookUrl, own };
}

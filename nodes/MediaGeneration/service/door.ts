import type { IDataObject } from 'n8n-workflow';

import { isRecord, plainName, without } from '../shared/json';
import { asTaskId, findField, findStated, findTaskId } from './answerFields';
import { ServiceError } from './serviceError';
import type { Service } from './services';

/** The value of a placeholder; undefined, null or an empty text if it has none. */
type ValueOf = (name: string) => unknown;

const PLACEHOLDER = /\{(\w+)\}/g;

const OF_MODEL = ['model', 'kind', 'name', 'app'];

/** The placeholders that name no field of the input. */
export const FIXED = [...OF_MODEL, 'input', 'callback', 'taskId', 'key'];

/** The placeholders in a text, or anywhere in the texts of a JSON value. */
export const placeholdersIn = (template: unknown): string[] =>
	[...(JSON.stringify(template) ?? '').matchAll(PLACEHOLDER)].map(([, name = '']) => name);

/** @param name one of `OF_MODEL` */
function partOfModel(model: string, name: string): string | undefined {
	const parts = model.split('/');
	const all = { kind: parts.slice(0, -1), name: parts.slice(-1), app: parts.slice(0, 2) };
	return name === 'model' ? model : all[name as keyof typeof all]?.join('/');
}

/** Whether a model's parts can stand in a path: none of them leads elsewhere. */
const isPath = (model: string): boolean =>
	model.split('/').every((part) => asTaskId(part) === part);

/**
 * A path with its values, each of which is a part of the path and leads to no other. A query parameter without a value is
 * left out.
 */
function pathOf(template: string, valueOf: ValueOf): string {
	const written = (text: string): string =>
		text.replace(PLACEHOLDER, (_all, name: string) => {
			const value = String(valueOf(name) ?? '');
			if (!OF_MODEL.includes(name)) return encodeURIComponent(value);
			return value.split('/').map(encodeURIComponent).join('/');
		});
	const [path = '', query = ''] = template.split('?');
	const parameters = query
		.split('&')
		.filter((each) => placeholdersIn(each).every((name) => Boolean(valueOf(name))))
		.filter((each) => each !== '');
	return written(path) + (parameters.length > 0 ? `?${parameters.map(written).join('&')}` : '');
}

/** A template with its values. What contains a placeholder without a value is undefined; a list loses such entries. */
function filled(template: unknown, valueOf: ValueOf): unknown {
	if (typeof template === 'string') {
		const names = placeholdersIn(template);
		if (names.some((name) => [undefined, null, ''].includes(valueOf(name) as null)))
			return undefined;
		const [name] = names;
		if (template === `{${name}}`) return valueOf(String(name));
		return template.replace(PLACEHOLDER, (_all, each: string) => String(valueOf(each)));
	}
	if (Array.isArray(template)) {
		const entries = template.map((each) => filled(each, valueOf));
		const left = entries.filter((each) => each !== undefined);
		return left.length === 0 && entries.length > 0 ? undefined : left;
	}
	if (!isRecord(template)) return template;
	const fields = Object.entries(template).map(([name, each]) => [name, filled(each, valueOf)]);
	return fields.some(([, value]) => value === undefined) ? undefined : Object.fromEntries(fields);
}

/** What is ordered. */
export interface Order {
	model: string;
	input: IDataObject;
	/** The callback address, if the service is to have one. */
	callback: string | undefined;
}

/** A create's path and body. A field of the input by its own name wins over one that the row makes of the input. */
export function orderOf(
	{ create, body }: Service,
	{ model, input, callback }: Order,
): { path: string; body: IDataObject } {
	const valueOf: ValueOf = (name) => {
		if (!FIXED.includes(name)) return input[name];
		return name === 'input' ? input : name === 'callback' ? callback : partOfModel(model, name);
	};
	const { '...': spread, ...fields } = body;
	const made: IDataObject = {};
	const fixed: IDataObject = {};
	for (const [name, template] of Object.entries(fields)) {
		const value = filled(template, valueOf);
		const isMade = placeholdersIn(template).some((each) => !FIXED.includes(each));
		if (value !== undefined) (isMade ? made : fixed)[name] = value as IDataObject;
	}
	const rest = spread === undefined ? {} : without(input, ...placeholdersIn(fields));
	return { path: pathOf(create, valueOf), body: { ...made, ...rest, ...fixed } };
}

/** Whether the ids of a service's tasks begin with the model, since the path of a read has a part of the model. */
export const isOfModel = ({ read }: Service): boolean =>
	placeholdersIn(read).some((name) => OF_MODEL.includes(name));

/** The service's own part of an id. */
const ownId = (service: Service, taskId: string): string =>
	isOfModel(service) ? taskId.slice(taskId.lastIndexOf('/') + 1) : taskId;

/**
 * The path of a task: of its record, its result or its file.
 *
 * @throws ServiceError if the id has no model, and the service's path needs one
 */
export function taskPath(service: Service, template: string, taskId: string): string {
	const id = ownId(service, taskId);
	const model = taskId.slice(0, -id.length - 1);
	if (isOfModel(service) && (!isPath(model) || asTaskId(id) !== id)) {
		throw new ServiceError('rejected', `The id ${taskId} does not begin with a model`, {
			description:
				"The ids of this service's tasks are the model, a slash and the id of the request, e.g. provider/model/1f2e.",
		});
	}
	return pathOf(template, (name) => (name === 'taskId' ? id : partOfModel(model, name)));
}

const NO_TASK = '00000000-0000-0000-0000-000000000000';

/** The path for the credential's test: the balance, or a task that cannot be. */
export const testPath = ({ balance }: Service): string => pathOf(balance, () => NO_TASK);

/** Whether the service tells the balance. */
export const hasBalance = ({ balance }: Service): boolean => !placeholdersIn(balance).length;

/** The headers of a request, with the key. */
export const headersOf = ({ headers }: Service, key: string): Record<string, string> =>
	filled(headers, () => key) as Record<string, string>;

/**
 * Refuses a model that would lead to another path, or to none.
 *
 * @throws ServiceError `rejected`; nothing was sent
 */
export function checkModel({ create, read }: Service, model: string): void {
	const names = placeholdersIn(create + read);
	if (!names.some((name) => OF_MODEL.includes(name))) return;
	const isWhole = !placeholdersIn(create).includes('kind') || model.includes('/');
	if (isWhole && isPath(model)) return;
	throw new ServiceError('rejected', `The model '${model}' cannot be a part of the address`, {
		description: `The service has an address for each model: ${create}. ${isWhole ? 'Enter the model as its documentation has it.' : 'Enter what its documentation has in the address, a slash and the model, e.g. image_to_video/model-name.'}`,
	});
}

/**
 * The id of a task in the answer to a create or in the body of a callback, as the outputs show it.
 *
 * @param model the model, if it is known
 */
export function taskIdIn(answer: unknown, service: Service, model?: unknown): string | undefined {
	const own = service.id.map((name) => findField(answer, name, asTaskId)).find(Boolean);
	if (own === undefined) return findTaskId(answer);
	if (!isOfModel(service)) return own;
	return typeof model === 'string' && isPath(model) ? `${model}/${own}` : undefined;
}

/** The words of an end, as `plainName` writes them, whatever the service. */
const SUCCESS = /^(?:success|succeed(?:ed)?|completed?|finished|done|ready)$/;
const FAILURE = /^(?:fail(?:ed|ure)?|error|cancel(?:l?ed)?|aborted|expired|rejected|\w*moderated)$/;

/**
 * Reads the record of a task in the names of the specification. Where several layers have a state, that of the layer that
 * names the task counts.
 *
 * @returns the part of the record that has the state, the state and the service's word for it, and the results in whatever
 *   shape; undefined if the answer has no state
 */
export function asSpecified(answer: unknown, service: Service, taskId: string) {
	const stated = findStated(answer, service.state, ownId(service, taskId));
	if (stated === undefined) return undefined;
	const word = String(stated[service.state]).trim();
	const plain = plainName(word);
	const ended = SUCCESS.test(plain) ? 'SUCCESS' : FAILURE.test(plain) ? 'FAILURE' : undefined;
	const state = ended ?? 'PENDING';
	return { stated, state, word, results: resultsIn(answer, service, stated) } as const;
}

/** The results of an answer: the first of the row's names that has a value, beside the state first. */
export const resultsIn = (
	answer: unknown,
	{ results, state }: Service,
	stated = findStated(answer, state),
): unknown =>
	results
		.split(',')
		.map((name) => findField(answer, name.trim(), (value) => value, stated))
		.find((value) => value !== undefined);

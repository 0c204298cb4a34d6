import type { IDataObject } from 'n8n-workflow';

import { isRecord, parsedJson, plainFields, plainName } from '../shared/json';
import { quoted } from '../shared/media';

/** Longer than any id of a service, and short enough for a URL. */
const MAX_TASK_ID_LENGTH = 512;

/**
 * Reads a task id from a JSON value or a parameter.
 *
 * @returns the id, or undefined if the value cannot be an id. `.` and `..` cannot: in a URL path they lead to another
 *   endpoint, encoded or not.
 */
export function asTaskId(value: unknown): string | undefined {
	const id = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value;
	if (typeof id !== 'string') return undefined;
	const trimmed = id.trim();
	if (['', '.', '..'].includes(trimmed) || trimmed.length > MAX_TASK_ID_LENGTH) return undefined;
	return trimmed.isWellFormed() ? trimmed : undefined;
}

const UUID = /^[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$/i;

/** The form of an id for comparisons: a UUID is the same in small and in capital letters. */
export const comparableId = (taskId: string): string =>
	UUID.test(taskId) ? taskId.toLowerCase() : taskId;

interface Layer {
	fields: IDataObject;
	/** The names of the fields that lead to it, as `plainName` writes them. */
	path: string[];
	/** The length of the longest list that leads to it; 0 if no list does. */
	among: number;
}

/** Deeper than any answer. */
const MAX_DEPTH = 8;

/** Fields that repeat what the user sent, as `plainName` writes them: metadata of the user may have a `taskId`. */
const OF_USER =
	/^(?:prompt|param|request|option|setting|config|custom|user|webhook|callback)|meta(?:data)?$|inputs?$/;

/** Fields that speak of other tasks: an error may name those that fill the account. */
const OF_OTHERS =
	/^(?:error|parent|source|previous|related|existing|active|running|recent|histor|depend)/;

/**
 * The objects of an answer that may say something of its task, the outermost one first. Lists and JSON texts are looked
 * into; the fields of `OF_USER` and `OF_OTHERS` are not.
 */
function* layersIn(answer: unknown): Generator<Layer> {
	let level: Array<Omit<Layer, 'fields'> & { value: unknown }> = [
		{ value: answer, path: [], among: 0 },
	];
	for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth++) {
		const inner: typeof level = [];
		for (const { value: written, path, among } of level) {
			const isJson = typeof written === 'string' && /^\s*[[{]/.test(written);
			const value = isJson ? parsedJson(written) : written;
			if (Array.isArray(value)) {
				const length = Math.max(among, value.length);
				for (const each of value as unknown[]) inner.push({ value: each, path, among: length });
			} else if (isRecord(value)) {
				yield { fields: value, path, among };
				for (const [name, each] of Object.entries(value)) {
					if (typeof each !== 'object' && typeof each !== 'string') continue;
					const plain = plainName(name);
					if (OF_USER.test(plain) || OF_OTHERS.test(plain)) continue;
					inner.push({ value: each, path: [...path, plain], among });
				}
			}
		}
		level = inner;
	}
}

/** The objects of an answer that may be of its task, the outermost one first: none of several in a list. */
export function* layersOf(answer: unknown): Generator<IDataObject> {
	for (const { fields, among } of layersIn(answer)) if (among <= 1) yield fields;
}

/** The outermost object of an answer, which may be a list of one, or JSON as text. */
export const rootOf = (answer: unknown): IDataObject | undefined =>
	layersOf(answer).next().value as IDataObject | undefined;

/** The names of a task's id, most telling first. */
const ID_NAMES: ReadonlyArray<(fields: IDataObject) => unknown> = [
	({ taskId }) => taskId,
	(fields) => plainFields(fields).get('taskid'),
	(fields) => plainFields(fields).get('jobid'),
];

/** The fields in which a task stands that has only an `id`, most telling first; `undefined` is the answer itself. */
const ID_LAYERS: ReadonlyArray<ReadonlyArray<string | undefined>> = [
	['task', 'tasks', 'job', 'generation'],
	['data'],
	[undefined],
	['result', 'output', 'response'],
];

const isChain = ({ path }: Layer): boolean =>
	path.every((name) => ID_LAYERS.some((names) => names.includes(name)));

/** The one id among these values; null if there are several, so that nobody knows which is meant. */
function oneIdOf(values: readonly unknown[]): string | null | undefined {
	const [id, ...others] = new Set(values.map(asTaskId).filter((each) => each !== undefined));
	return others.length === 0 ? id : null;
}

/**
 * Finds the task id in the answer to a create or in the body of a callback, which the specification does not show (section
 * 6): `taskId`, at any depth, in lists and in JSON as text; without it `task_id` and other spellings; then `job_id`. If
 * several have the name, the outermost ones count, and if those differ, nobody knows which is meant: no id is guessed.
 *
 * Without such a name `id` counts, of the innermost layer first: an event or an answer around the task often has an `id` of
 * its own, and `data` may have that of a customer. At last `data` itself may be the id. The fields of `OF_USER` and
 * `OF_OTHERS` are never looked into: an id that the user has sent along is not that of the task.
 */
export function findTaskId(answer: unknown): string | undefined {
	const layers = [...layersIn(answer)];
	const named = findNamedId(layers);
	if (named !== undefined) return named ?? undefined;
	const ofTask = layers.filter((layer) => isChain(layer));
	for (const names of ID_LAYERS) {
		const id = oneIdOf(
			ofTask.filter(({ path }) => names.includes(path.at(-1))).map(({ fields }) => fields.id),
		);
		if (id !== undefined) return id ?? undefined;
	}
	const data = layers[0]?.fields.data;
	// A word such as `queued` has no digit.
	const isId = typeof data === 'string' && /^[\w.:-]+$/.test(data) && /\d/.test(data);
	return isId ? asTaskId(data) : undefined;
}

function findNamedId(layers: readonly Layer[]): string | null | undefined {
	for (const valueOf of ID_NAMES) {
		const named = layers.filter(({ fields }) => asTaskId(valueOf(fields)) !== undefined);
		const depth = Math.min(...named.map(({ path }) => path.length));
		const outermost = named.filter(({ path }) => path.length === depth);
		const id = oneIdOf(outermost.map(({ fields }) => valueOf(fields)));
		if (id !== undefined) return id;
	}
	return undefined;
}

const hasState = (fields: IDataObject, name = 'state'): boolean =>
	typeof fields[name] === 'string' && fields[name].trim() !== '';

/**
 * The part of an answer that has the state of a task, if there is one: where several have a state, the one that names the
 * task; otherwise the likeliest to be of a task.
 *
 * @param state the name of the state
 * @param taskId the service's id of the task, if it is known
 */
export function findStated(answer: unknown, state: string, taskId?: string) {
	const stated = [...layersIn(answer)].filter(
		({ fields, among }) => among <= 1 && hasState(fields, state),
	);
	const namesTask = ({ fields }: Layer) =>
		Object.values(fields).some((value) => asTaskId(value) === taskId);
	const named = taskId === undefined ? undefined : stated.find(namesTask);
	const ofTask = ID_LAYERS.map((names) =>
		stated.find((layer) => isChain(layer) && names.includes(layer.path.at(-1))),
	).find(Boolean);
	return (named ?? ofTask ?? stated[0])?.fields;
}

/**
 * Reads a field of an answer, also in another writing, such as `result_urls`.
 *
 * @param read gives undefined for a value that tells nothing
 * @param first the part of the answer to look in first: the state and the rest may stand in different layers
 */
export function findField<T>(
	answer: unknown,
	name: string,
	read: (value: unknown) => T | undefined,
	first?: IDataObject,
): T | undefined {
	const layers = first ? [first, ...layersOf(answer)] : layersOf(answer);
	for (const fields of layers) {
		const value = read(fields[name] ?? plainFields(fields).get(plainName(name)) ?? undefined);
		if (value !== undefined) return value;
	}
	return undefined;
}

/**
 * Whether an answer is about a task: it names a task, or has a state. A refusal may list the tasks that fill the account, so
 * lists do not count here, nor what is deep inside.
 */
export function isOfTask(answer: unknown): boolean {
	for (const layer of layersIn(answer)) {
		if (layer.among > 0 || !isChain(layer)) continue;
		const { fields } = layer;
		const isRecordOfTask = hasState(fields, 'status') && asTaskId(fields.id) !== undefined;
		if (isRecordOfTask || hasState(fields) || findNamedId([layer]) !== undefined) return true;
	}
	return false;
}

/**
 * The names of fields that may hold the words of a failure, most telling first, as `plainName` writes names. What ends like
 * a code, a time or an address has no words.
 */
const NO_WORDS = /(?:code|type|status|state|at|time|date|id|url|count|name)$/;
const OF_FAILURE = [/reason|^fail/, /^err/, /(?:message|msg)$/, /detail/];

/** The same for other answers. In a task record these fields repeat what the user sent. */
const FURTHER = [/^(?:description|title|data)$/];

/** Codes, if there are no words. */
const CODES = [/^(?:fail|err).*code$/];

/** An envelope says this of itself, also around a failure; and a field without a value. */
const NOTHING_SAID =
	/^(ok|okay|success(ful|fully)?|succeed(ed)?|done|null|none|n\/a|true|false|[\d.]+)[.!]?$/i;

const MAX_MESSAGE_DEPTH = 4;

/** The values of the fields that a rank names, and whose names are words; the names of the user's own fields are none. */
const fieldsOf = (fields: IDataObject, rank: RegExp): unknown[] =>
	Object.entries(fields)
		.map(([name, value]) => ({ plain: plainName(name), value }))
		.filter(({ plain }) => rank.test(plain) && !OF_USER.test(plain))
		.filter(({ plain }) => CODES.includes(rank) || !NO_WORDS.test(plain))
		.map(({ value }) => value);

/**
 * Finds the message in an answer whose shape is not known.
 *
 * @param ranks the names of fields to look in; inside them those of all answers
 * @returns one line, cut if it is long, or undefined if there is no message
 */
export function findServiceMessage(
	body: unknown,
	ranks: readonly RegExp[] = [...OF_FAILURE, ...FURTHER],
	depth = 0,
): string | undefined {
	if (typeof body === 'string') {
		const line = body.replace(/\s+/g, ' ').trim();
		return line === '' || NOTHING_SAID.test(line) ? undefined : quoted(line);
	}
	if (depth >= MAX_MESSAGE_DEPTH) return undefined;
	const values = Array.isArray(body)
		? (body as unknown[])
		: isRecord(body)
			? ranks.flatMap((rank) => fieldsOf(body, rank))
			: [];
	for (const value of values) {
		const message = findServiceMessage(value, undefined, depth + 1);
		if (message !== undefined) return message;
	}
	return undefined;
}

/**
 * The reason in the record of a task: of the part that has the state, then of what is inside, then of what is around.
 *
 * @param stated the part that has the state
 */
export function findReason(record: unknown, stated?: IDataObject): string | undefined {
	const inside = stated === undefined ? [] : [...layersOf(stated)];
	for (const ranks of [OF_FAILURE, CODES]) {
		for (const layer of [...inside, ...layersOf(record)]) {
			const reason = findServiceMessage(layer, ranks);
			if (reason !== undefined) return reason;
		}
	}
	return undefined;
}

import type { IBinaryData, IExecuteFunctions, IDataObject } from 'n8n-workflow';

import { isOutOfReach } from '../shared/addresses';
import { ItemError, messageOf } from '../shared/itemError';
import { isRecord, leavesIn, mapEntries } from '../shared/json';
import { cutDataUri, cutDataUris, mediaTypeOf } from '../shared/media';
import { choice, type ItemParameters, refused, textsIn } from '../shared/parameters';
import type { CreatePlan } from './planTypes';

/**
 * A file in the input of a task. It is read when the task is sent, and becomes a data URI, or a link that n8n signs.
 * Until then its JSON form names the file.
 */
export class InputFile {
	/** By its label, and after the file was read by its first bytes. */
	mimeType: string;

	readonly bytes: number | undefined;

	/** What the output shows; complete after the file was read. */
	preview: string;

	/** @param source the binary field of the item, or the binary object that an expression gave */
	constructor(
		readonly source: string | IBinaryData,
		private readonly data: IBinaryData,
	) {
		this.mimeType = mediaTypeOf(Buffer.alloc(0), data.mimeType ?? '', data.fileName ?? '');
		this.bytes = sizeOf(data);
		const size = this.bytes === undefined ? [] : [`${this.bytes} bytes`];
		this.preview = `${this.uriStart}… (${[data.fileName ?? 'a file', ...size].join(', ')})`;
	}

	get name(): string {
		return typeof this.source === 'string' ? this.source : (this.data.fileName ?? 'file');
	}

	/** The data URI without its content. */
	get uriStart(): string {
		return `data:${this.mimeType};base64,`;
	}

	/** Notes what the file is, by its content. @returns the file as a data URI */
	uriOf(content: Buffer): string {
		this.mimeType = mediaTypeOf(content, this.mimeType, '');
		const uri = this.uriStart + content.toString('base64');
		this.preview = cutDataUri(uri);
		return uri;
	}

	/** Whether n8n keeps the file outside of memory, where a link can lead to it. */
	get isStored(): boolean {
		return this.data.id !== undefined;
	}

	/** A link to the file at n8n, for whoever has the link. @param seconds until the link ends */
	link({ createBinarySignedUrl }: IExecuteFunctions['helpers'], seconds: number): string {
		return createBinarySignedUrl(this.data, `${seconds}s`);
	}

	/** As the file is stored with a run that sleeps. */
	toJSON(): IDataObject {
		return { [FILE]: this.source } as IDataObject;
	}
}

/** The field of a stored file, which no input of a model has. */
const FILE = 'n8n-nodes-media-generation file';

/**
 * The input of a plan that n8n has stored. A field of the item has the file under the id that it has now: n8n renames
 * uploaded files when it stores the execution.
 *
 * @throws ItemError if a file is not there any more
 */
export function reviveFiles(
	context: IExecuteFunctions,
	{ input, itemIndex }: Pick<CreatePlan, 'input' | 'itemIndex'>,
): IDataObject {
	const revive = (source: string | IBinaryData) => {
		if (typeof source === 'string') {
			return new InputFile(source, context.helpers.assertBinaryData(itemIndex, source));
		}
		const id = source.id?.replace('/executions/temp/', `/executions/${context.getExecutionId()}/`);
		const present = { ...source, ...(id !== undefined && { id }) };
		return new InputFile(present, present);
	};
	const visit = (value: unknown): unknown => {
		const isFile = isRecord(value) && FILE in value;
		return isFile ? revive(value[FILE] as string | IBinaryData) : mapEntries(value, visit);
	};
	return mapEntries(input, visit) as IDataObject;
}

/** The files of one item are in memory together as data URIs, several times while they are sent. */
const MOST_CHARACTERS = 50 * 1024 ** 2;

/** @throws ItemError if the files are too large to be sent as data */
function checkTotal(characters: number): void {
	if (characters <= MOST_CHARACTERS) return;
	throw new ItemError('The files of this item are too large to be sent as data', {
		description: `Together they have more than ${MOST_CHARACTERS / 1024 ** 2} MiB as data URIs. Send smaller files, or choose 'Links' in 'Send Files As'. No task was created.`,
	});
}

const asData = (bytes: number) => Math.ceil(bytes / 3) * 4;

/**
 * The input as it is sent. The files are read now, so that memory holds only the files under way. Links are made now,
 * too, and end with the task's time.
 *
 * @throws ItemError if the files together are too large to be sent as data
 */
export async function sentInput(
	{ helpers }: IExecuteFunctions,
	{ input, itemIndex, sendsLinks, timeoutMs }: CreatePlan,
): Promise<IDataObject> {
	if (sendsLinks)
		return replaceIn(input, (file) => file.link(helpers, Math.ceil(timeoutMs / 1000)));
	const uris = new Map<InputFile, string>();
	const files = filesIn(input);
	// Nothing is read if the known sizes are too large.
	checkTotal(files.reduce((sum, { bytes = 0 }) => sum + asData(bytes), 0));
	let characters = 0;
	for (const file of files) {
		const buffer = await helpers.getBinaryDataBuffer(itemIndex, file.source);
		characters += asData(buffer.length);
		checkTotal(characters);
		uris.set(file, file.uriOf(buffer));
	}
	return uris.size === 0 ? input : replaceIn(input, (file) => uris.get(file));
}

/** The fields `model` and `input` of an output item, with long data URIs cut. No file is read. */
export function echo({ model, input }: Pick<CreatePlan, 'model' | 'input'>): IDataObject {
	return { model, input: cutDataUris(replaceIn(input, ({ preview }) => preview)) as IDataObject };
}

function replaceIn(input: IDataObject, replace: (file: InputFile) => unknown): IDataObject {
	const visit = (value: unknown): unknown =>
		value instanceof InputFile ? replace(value) : mapEntries(value, visit);
	return visit(input) as IDataObject;
}

const filesIn = (input: IDataObject) => leavesIn(input).filter((leaf) => leaf instanceof InputFile);

/** What to do where a binary field is missing. @param names the binary fields that the item has */
function wayOutOf(names: readonly string[], label: string): string {
	if (names.length === 0) {
		return 'The item has no files: put a node before this node that brings them, or that keeps them.';
	}
	const list = names.map((name) => `'${name}'`).join(', ');
	return `Enter a binary field of the item in '${label}': ${list}.`;
}

/**
 * Finds files of the item without reading them.
 *
 * @param value the name of a binary field, several names with commas, a binary object from an expression, or a list of
 *   these
 * @param label the label of the parameter with the value
 * @throws ItemError if there is no file, or a file is missing or empty
 */
export function findFiles(parameters: ItemParameters, value: unknown, label: string): InputFile[] {
	const { context, itemIndex } = parameters;
	const present = context.getInputData()[itemIndex]?.binary ?? {};
	const description = wayOutOf(Object.keys(present), label);
	const files = sourcesIn(value).map((source) => {
		if (typeof source !== 'string') return new InputFile(source, source);
		// A name such as 'constructor' is an inherited property.
		const data: unknown = Object.hasOwn(present, source) ? present[source] : undefined;
		if (isStored(data)) return new InputFile(source, data);
		const message = `The item has no binary field '${source}'`;
		throw parameters.unfinished(label) ?? new ItemError(message, { description });
	});
	if (files.length === 0) {
		throw parameters.empty(label, description);
	}
	for (const file of files) checkFile(file, label);
	return files;
}

function sourcesIn(value: unknown): Array<string | IBinaryData> {
	if (Array.isArray(value)) return value.flatMap(sourcesIn);
	if (typeof value === 'string') return textsIn(value, ',');
	if (!isRecord(value)) return [];
	// `$binary` is an object of files.
	return isFile(value) ? [value] : Object.values(value).filter(isFile);
}

const isFile = (value: unknown): value is IBinaryData =>
	isRecord(value) && typeof value.mimeType === 'string';

const isStored = (value: unknown): value is IBinaryData =>
	isRecord(value) && ('data' in value || 'id' in value);

function checkFile({ source, bytes, name }: InputFile, label: string): void {
	if (typeof source !== 'string' && source.id === undefined && !source.data) {
		throw new ItemError(`The content of the file '${name}' cannot be reached by this expression`, {
			description: `Enter the name of the binary field in '${label}' instead, e.g. 'data'. n8n keeps files in memory here, and $binary does not have their content.`,
		});
	}
	if (bytes === 0) {
		throw new ItemError(`The file '${name}' is empty (0 bytes)`, {
			description: 'Look at the node before this node: its output has this file.',
		});
	}
}

function sizeOf({ bytes, id, data }: IBinaryData): number | undefined {
	// Without an id `data` is the content in base64, unless the file comes from $binary.
	const isInMemory = id === undefined && typeof data === 'string';
	return bytes ?? (isInMemory ? Buffer.byteLength(data, 'base64') : undefined);
}

/**
 * Whether the files of an input are sent as links that n8n signs, and not as data.
 *
 * @throws ItemError if n8n makes no link of a file, or the service at the base URL could not open the link
 */
export function readSendsLinks(
	parameters: ItemParameters,
	input: IDataObject,
	baseUrl: string,
): boolean {
	const value = parameters.option('sendFilesAs') ?? 'data';
	if (choice('Send Files As', value, { data: 'Data', link: 'Links' }) === 'data') return false;
	for (const file of filesIn(input)) checkLink(parameters.context.helpers, file, baseUrl);
	return true;
}

function checkLink(helpers: IExecuteFunctions['helpers'], file: InputFile, baseUrl: string): void {
	const refusal = (why: string, wayOut: string) => {
		const way = `${wayOut}, or choose 'Data' in 'Send Files As'. No task was created.`;
		return refused('Send Files As', `'Links', but ${why}`, way);
	};
	if (!file.isStored) {
		const wayOut = "Set N8N_DEFAULT_BINARY_DATA_MODE to 'filesystem', 'database' or 's3'";
		throw refusal(`n8n keeps the file '${file.name}' in memory`, wayOut);
	}
	let link: string;
	try {
		link = file.link(helpers, 1);
	} catch (error) {
		const why = `n8n makes no link of the file '${file.name}': ${messageOf(error)}`;
		throw refusal(why, 'Look at the file');
	}
	if (URL.canParse(link) && !isOutOfReach(link, baseUrl)) return;
	const origin = link.split('/').slice(0, 3).join('/');
	// n8n makes the link of the address for webhooks, and not of the address of its editor.
	const wayOut = 'Set N8N_WEBHOOK_URL to the public address of n8n';
	throw refusal(`the service cannot reach n8n at '${origin}'`, wayOut);
}

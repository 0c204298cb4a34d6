import type { IExecuteFunctions } from 'n8n-workflow';

import { digest, isRecord } from '../shared/json';

/** The parameters and options that make up a request. The others may be changed for a retry: the task stays the same. */
const OF_REQUEST = [
	'resource',
	'operation',
	'model',
	'prompt',
	'promptPerLine',
	'input',
	'taskId',
	'imageSource',
	'imageUrl',
	'binaryPropertyName',
	'durationSeconds',
];
const OPTIONS_OF_REQUEST = ['additionalInput', 'additionalFields', 'files'];

const pick = (from: unknown, names: readonly string[]) =>
	names.map((name) => (isRecord(from) ? (from[name] ?? null) : null));

/**
 * Recognises an input item in a later turn or try: by its parameters as they are written and by its input, because
 * expressions such as `Math.random()` give another value each time.
 */
export function readItemIdentity(context: IExecuteFunctions, itemIndex: number): string {
	const { parameters = {} } = context.getNode();
	const { json = {}, binary = {} } = context.getInputData()[itemIndex] ?? {};
	const files = Object.entries(binary).map(([name, { id, fileName, fileSize }]) => [
		name,
		id ?? null,
		fileName ?? null,
		fileSize ?? null,
	]);
	return digest([
		pick(parameters, OF_REQUEST),
		pick(parameters.options, OPTIONS_OF_REQUEST),
		json,
		files,
	]);
}

import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { hasCutDataUri } from '../shared/dataUri';
import { ItemError } from '../shared/itemError';
import { describe, type ItemParameters, refused } from '../shared/parameters';
import { withValuesIn } from './furtherInput';
import { findFiles } from './itemFile';

/** The field of the model's input that takes a video's duration. */
export function durationField(parameters: ItemParameters): string {
	return parameters.optionText('durationField', 'duration');
}

/** The input of a task as JSON; the template that nobody has filled in counts as empty. */
export function readRawInput(parameters: ItemParameters): IDataObject {
	const input = parameters.jsonObject(parameters.value('input'), 'Input');
	return input.prompt === '' && Object.keys(input).length === 1 ? {} : input;
}

/** @throws ItemError where there is nothing to send, or a file that only an output's sketch is left of */
export function checkInput(input: IDataObject): void {
	if (hasCutDataUri(input)) {
		throw new ItemError('The input has a file that is cut short, as outputs show files', {
			description:
				"Add the option 'Files' with the binary field of the item in place of what a node before has put out in 'input'.",
		});
	}
	if (Object.keys(input).length > 0) return;
	const wayOut =
		'Write the input of the model as a JSON object, e.g. { "prompt": "a lighthouse at dusk" }, or add the option \'Additional Fields\'.';
	throw refused('Input', 'empty', wayOut);
}

/** The input of an image or a video, from its fields. */
export function readMediaInput(
	parameters: ItemParameters,
	context: IExecuteFunctions,
	resource: unknown,
): IDataObject {
	const input: IDataObject = { prompt: readPrompt(parameters) };
	if (resource !== 'video') return input;

	const seconds = parameters.number('durationSeconds', parameters.value('durationSeconds'));
	if (seconds > 0) input[durationField(parameters)] = seconds;

	const imageField = parameters.optionText('imageField', 'image_url');
	switch (parameters.value('imageSource')) {
		case 'none':
			return input;
		case 'binary': {
			const label = 'Input Data Field Name';
			const value = parameters.value('binaryPropertyName');
			const files = findFiles(parameters, context, value, label);
			const other = files.find(({ mimeType }) => !mimeType.startsWith('image/'));
			if (other) {
				throw new ItemError(
					`The field '${other.name}' holds '${other.mimeType}' and not a picture`,
					{ description: `Choose a field with a picture in '${label}'.` },
				);
			}
			return withValuesIn(input, imageField, files);
		}
		default:
			return withValuesIn(input, imageField, [readImageUrl(parameters)]);
	}
}

function readPrompt(parameters: ItemParameters): string {
	const prompt = parameters.requiredText(
		'prompt',
		'Prompt',
		'Describe what is to be generated. If the prompt is an expression, check that the incoming item has that field.',
	);
	if (!prompt.includes(OBJECT_IN_TEXT) || !parameters.isExpression('prompt')) return prompt;
	throw new ItemError(`The parameter 'Prompt' has an object in its text: '${OBJECT_IN_TEXT}'`, {
		description:
			'An expression in it gives an object or a list. Take one field of that, as in {{ $json.product.name }}.',
	});
}

/** What becomes of an object within a text. */
const OBJECT_IN_TEXT = '[object Object]';

function readImageUrl(parameters: ItemParameters): string {
	const wayOut =
		"Enter an address that the service can reach, e.g. https://example.com/image.png, or choose another 'Reference Image'.";
	const text = parameters.requiredText('imageUrl', 'Image URL', wayOut).trim();
	if (/^data:image\//i.test(text)) return text;
	if (!URL.canParse(text)) {
		throw refused('Image URL', `not a valid address: ${describe(text)}`, wayOut);
	}
	const { protocol } = new URL(text);
	if (protocol !== 'https:' && protocol !== 'http:') {
		throw new ItemError(`The parameter 'Image URL' starts with '${protocol}'`, {
			description: wayOut,
		});
	}
	return text;
}

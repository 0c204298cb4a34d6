import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { ItemError } from '../shared/itemError';
import type { ItemParameters } from '../shared/parameters';
import type { CreatePlan } from './itemPlan';

/** The field of the model's input that takes a video's duration. */
export function durationField(parameters: ItemParameters): string {
	return parameters.optionText('durationField', 'duration');
}

type MediaInput = Pick<CreatePlan, 'input' | 'image'>;

/** The input of a task as JSON. */
export function readRawInput(parameters: ItemParameters): MediaInput {
	const input = parameters.jsonObject(parameters.value('input'), 'Input');
	if (Object.keys(input).length === 0) {
		throw new ItemError("The parameter 'Input' is empty", {
			description:
				'Write the input of the model as a JSON object, e.g. { "prompt": "a lighthouse at dusk" }.',
		});
	}
	// A copy: the object may be the one that a node before put out.
	return { input: { ...input } };
}

/** The input of an image or a video, from its fields. */
export function readMediaInput(
	parameters: ItemParameters,
	context: IExecuteFunctions,
	resource: unknown,
): MediaInput {
	const input: IDataObject = {
		prompt: parameters.requiredText(
			'prompt',
			'Prompt',
			'Describe what is to be generated. If the prompt is an expression, check that the incoming item has that field.',
		),
	};
	if (resource !== 'video') return { input };

	const seconds = parameters.number(parameters.value('durationSeconds'), 'Duration', {
		fallback: 0,
		min: 0,
		unit: 'seconds; 0 leaves the choice to the model',
	});
	if (seconds > 0) input[durationField(parameters)] = seconds;

	const imageField = parameters.optionText('imageField', 'image_url');
	switch (parameters.value('imageSource')) {
		case 'none':
			return { input };
		case 'binary': {
			const binaryPropertyName = parameters.requiredText(
				'binaryPropertyName',
				'Input Data Field Name',
				"Enter the name of the field that holds the picture, e.g. 'data'.",
			);
			const { mimeType } = context.helpers.assertBinaryData(
				parameters.itemIndex,
				binaryPropertyName,
			);
			if (!mimeType.startsWith('image/')) {
				throw new ItemError(
					`The field '${binaryPropertyName}' holds '${mimeType}' and not a picture`,
					{ description: "Choose a field with a picture in 'Input Data Field Name'." },
				);
			}
			return { input, image: { field: imageField, binaryPropertyName } };
		}
		default:
			input[imageField] = readImageUrl(parameters);
			return { input };
	}
}

function readImageUrl(parameters: ItemParameters): string {
	const wayOut =
		"Enter an address that the service can reach, e.g. https://example.com/image.png, or choose another 'Reference Image'.";
	const text = parameters.requiredText('imageUrl', 'Image URL', wayOut).trim();
	if (/^data:image\//i.test(text)) return text;
	if (!URL.canParse(text)) {
		throw new ItemError(
			`The parameter 'Image URL' is not a valid address: '${text.slice(0, 100)}'`,
			{
				description: wayOut,
			},
		);
	}
	const { protocol } = new URL(text);
	if (protocol !== 'https:' && protocol !== 'http:') {
		throw new ItemError(`The parameter 'Image URL' starts with '${protocol}'`, {
			description: wayOut,
		});
	}
	return text;
}

import type { IDisplayOptions, INodeProperties, INodePropertyOptions } from 'n8n-workflow';

import { type NumberBounds, NUMBERS } from '../shared/parameters';

/** The operations of a resource. */
export const operationField = (
	resource: string,
	operation: string,
	options: INodePropertyOptions[],
): INodeProperties => ({
	displayName: 'Operation',
	name: 'operation',
	type: 'options',
	noDataExpression: true,
	displayOptions: { show: { resource: [resource] } },
	default: operation,
	options,
});

/** A number field with its bounds and its default. */
export function numberField(displayName: string, name: keyof typeof NUMBERS): INodeProperties {
	const { min = 0, max, fallback = 0 }: NumberBounds = NUMBERS[name];
	return {
		displayName,
		name,
		type: 'number',
		typeOptions: { minValue: Math.min(min, fallback), ...(max !== undefined && { maxValue: max }) },
		default: fallback,
	};
}

/** The collection *Options*. */
export const optionsField = (options: INodeProperties[]): INodeProperties => ({
	displayName: 'Options',
	name: 'options',
	type: 'collection',
	placeholder: 'Add option',
	default: {},
	options,
});

/** @param content what the file contains */
export const fileField = (content: string): INodeProperties => ({
	displayName: 'Input Data Field Name',
	name: 'binaryPropertyName',
	type: 'string',
	default: 'data',
	placeholder: 'e.g. data',
	hint: `The name of the input field containing the ${content}, as the Binary tab of the input shows it`,
	description:
		'Several names: put commas between them. For a file of an earlier node, use an expression.',
});

/** The same fields for each condition. Only one condition holds at a time. */
export const shownWhen = (
	conditions: Array<IDisplayOptions['show']>,
	properties: INodeProperties[],
): INodeProperties[] =>
	properties.flatMap((property) =>
		conditions.map((condition) => ({
			...property,
			displayOptions: {
				...property.displayOptions,
				show: { ...condition, ...property.displayOptions?.show },
			},
		})),
	);

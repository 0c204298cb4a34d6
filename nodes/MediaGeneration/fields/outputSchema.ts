/** A part of a JSON schema: as much as n8n's editor shows. */
interface Schema {
	type: 'string' | 'number' | 'boolean' | 'object' | 'array';
	properties?: Record<string, Schema>;
	items?: Schema;
}

const text: Schema = { type: 'string' };
const number: Schema = { type: 'number' };

const object = (properties: Record<string, Schema> = {}): Schema => ({
	type: 'object',
	properties,
});

const task = {
	taskId: text,
	state: text,
	resultUrls: { type: 'array', items: text },
	creditsConsumed: number,
} satisfies Record<string, Schema>;

const created = (input: Record<string, Schema>, more: Record<string, Schema> = {}) =>
	object({ ...task, model: text, input: object(input), ...more, record: object() });

const read = (more: Record<string, Schema> = {}) => object({ ...task, ...more, record: object() });

/**
 * The fields that each node puts out, which n8n's editor shows, to be dragged, before the node has run for the first
 * time. The build makes a file of each, at the path where n8n looks for it: version of the node, resource, operation.
 * The nodes share a folder, so each has a path of its own there.
 */
export const outputSchemas: Record<string, Schema> = {
	'v1.0.0/image/generate': created({ prompt: text }, { estimatedCostUsd: number }),
	'v1.0.0/video/generate': created(
		{ prompt: text, duration: number, image_url: text },
		{ estimatedCostUsd: number },
	),
	'v1.0.0/task/create': created({ prompt: text }),
	'v1.0.0/task/get': read(),
	'v1.0.0/task/wait': read(),
	'v1.0.0/task/redeliver': read({ delivered: { type: 'boolean' }, delivery: text }),
	// The credits node, which has no resource.
	'v1.0.0/getBalance': object({ balance: number, record: object() }),
	// The trigger, which has no operation either.
	'v1.0.0': read(),
};

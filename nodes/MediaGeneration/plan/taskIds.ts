import { asTaskId } from '../service/taskRecord';
import { ItemError } from '../shared/itemError';
import { describe, type ItemParameters } from '../shared/parameters';

const WAY_OUT =
	'Enter the task id that the service returned when the task was created, e.g. {{ $json.taskId }}, or several: a list, or a text with commas or line breaks between them.';

/**
 * Reads the tasks that an item names.
 *
 * @returns each id, or why it cannot be one
 * @throws ItemError where there is none
 */
export function readTaskIds(parameters: ItemParameters): Array<string | ItemError> {
	const entries = entriesOf(parameters.value('taskId'));
	if (entries.length === 0) throw parameters.empty('Task ID', WAY_OUT);
	return entries.map(
		(entry) =>
			asTaskId(entry) ??
			new ItemError(`The parameter 'Task ID' cannot be a task id: ${describe(entry)}`, {
				description: WAY_OUT,
			}),
	);
}

function entriesOf(value: unknown): unknown[] {
	if (Array.isArray(value)) return value.flatMap(entriesOf);
	if (typeof value !== 'string') return value === undefined || value === null ? [] : [value];
	return value
		.split(/[,\r\n]/)
		.map((entry) => entry.trim())
		.filter((entry) => entry !== '');
}

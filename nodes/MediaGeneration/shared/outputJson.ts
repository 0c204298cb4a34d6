import type { IDataObject } from 'n8n-workflow';

/**
 * The fields in the order of n8n's table: what became of the task first, and `record` last, since it is long and would
 * push the others out of sight.
 */
export function inTableOrder(fields: IDataObject): IDataObject {
	const { taskId, state, timedOut, error, record, ...others } = fields;
	return {
		...(taskId !== undefined && { taskId }),
		...(state !== undefined && { state }),
		...(timedOut !== undefined && { timedOut }),
		...(error !== undefined && { error }),
		...others,
		...(record !== undefined && { record }),
	};
}

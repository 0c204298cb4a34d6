import type { IDataObject } from 'n8n-workflow';

/** The fields with `record` behind all others: it is long, and would push them out of sight in n8n's table. */
export function recordLast({ record, ...fields }: IDataObject): IDataObject {
	return record === undefined ? fields : { ...fields, record };
}

import type { INodeProperties } from 'n8n-workflow';

/** The operations that create a task. */
export const creates = { '/operation': ['generate', 'create'] };

/** The same option under each of the conditions: one of them holds at a time. */
export const shownWhen = (
	property: INodeProperties,
	...conditions: Array<INodeProperties['displayOptions']>
): INodeProperties[] =>
	conditions.map((displayOptions) => ({ ...property, ...(displayOptions && { displayOptions }) }));

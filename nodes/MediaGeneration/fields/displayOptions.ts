import type { INodeProperties, NodeHint } from 'n8n-workflow';

/** The operations that create a task. */
export const creates = { '/operation': ['generate', 'create'] };

/** The same option under each of the conditions: one of them holds at a time. */
export const shownWhen = (
	property: INodeProperties,
	...conditions: Array<INodeProperties['displayOptions']>
): INodeProperties[] =>
	conditions.map((displayOptions) => ({ ...property, ...(displayOptions && { displayOptions }) }));

/** What the output panel says before a run, where it is the parameters that tell. */
export const panelHints: NodeHint[] = [
	{
		message:
			"The output holds the URL of each result. To see pictures here, add the option 'Download Results'.",
		location: 'outputPane',
		whenToDisplay: 'beforeExecution',
		displayCondition:
			'={{ $parameter["completion"] === "wait" && !$parameter["options"]["downloadResults"] }}',
	},
	{
		message:
			"Name each of the 'Additional Fields' as the model's own documentation does, e.g. aspect_ratio with 16:9.",
		location: 'outputPane',
		whenToDisplay: 'beforeExecution',
		displayCondition:
			'={{ !!$parameter["options"]["additionalFields"] && !$parameter["options"]["additionalFields"]["assignments"]?.[0]?.name }}',
	},
];

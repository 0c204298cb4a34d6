import type { IDisplayOptions, INodeProperties, NodeHint } from 'n8n-workflow';

/** The operations that create a task. */
export const CREATES = ['generate', 'create'];

/** Options of creates, whichever way they continue. */
export const ofCreates = { show: { '/operation': CREATES } };

/** The same option under each of the conditions: one of them holds at a time. */
export const shownWhen = (
	property: INodeProperties,
	...conditions: Array<IDisplayOptions['show']>
): INodeProperties[] => conditions.map((show) => ({ ...property, displayOptions: { show } }));

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
			"'Additional Fields': take each name from the model's documentation, e.g. aspect_ratio with 16:9. For line breaks in a value, switch the value to Expression.",
		location: 'outputPane',
		// n8n shows no hint at a list of fields, and somebody may add one after the first run.
		whenToDisplay: 'always',
		displayCondition:
			'={{ !!$parameter["options"]["additionalFields"] && !$parameter["options"]["additionalFields"]["assignments"]?.[0]?.name }}',
	},
];

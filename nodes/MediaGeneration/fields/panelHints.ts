import type { NodeHint } from 'n8n-workflow';

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

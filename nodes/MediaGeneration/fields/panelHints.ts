import type { NodeHint } from 'n8n-workflow';

/** What the output panel says before a run, where it is the parameters that tell. */
export const panelHints: NodeHint[] = [
	{
		message:
			"The output holds the URL of each result. To see pictures here and to pass files on, add the option 'Download Results'.",
		location: 'outputPane',
		whenToDisplay: 'beforeExecution',
		displayCondition:
			'={{ $parameter["completion"] === "poll" && !$parameter["options"]["downloadResults"] }}',
	},
];

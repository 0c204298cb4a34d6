import type { NodeHint } from 'n8n-workflow';

/** What the output panel says before a run, where it is the parameters that tell. */
export const panelHints: NodeHint[] = [
	{
		message:
			"The 'Callback URL' is an address of this computer. Unless the service runs here, too, it cannot call it, and the trigger does not start. Set n8n's environment variable WEBHOOK_URL to a public address, and copy the URL from the trigger again.",
		type: 'warning',
		location: 'outputPane',
		whenToDisplay: 'beforeExecution',
		displayCondition:
			'={{ $parameter["completion"] === "trigger" && /^\\s*https?:\\/\\/(localhost|127\\.|\\[::1\\])/i.test($parameter["callbackUrl"] ?? "") }}',
	},
	{
		message:
			"The output holds the URL of each result. To see pictures here and to pass files on, add the option 'Download Results'.",
		location: 'outputPane',
		whenToDisplay: 'beforeExecution',
		displayCondition:
			'={{ $parameter["completion"] === "poll" && !$parameter["options"]["downloadResults"] }}',
	},
];

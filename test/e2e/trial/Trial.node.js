/** A node that says what n8n tells a node of its execution, and sleeps or fails where its parameters say so. */
class Trial {
	description = {
		displayName: 'Trial',
		name: 'trial',
		group: ['transform'],
		version: 1,
		description: 'Says what n8n tells a node',
		defaults: { name: 'Trial' },
		inputs: ['main'],
		outputs: ['main'],
		properties: [
			{ displayName: 'Hold Ms', name: 'holdMs', type: 'number', default: 0 },
			{ displayName: 'Sleep Ms', name: 'sleepMs', type: 'number', default: 0 },
			{ displayName: 'Fails First', name: 'failsFirst', type: 'boolean', default: false },
		],
	};

	async execute() {
		const { hooks, executionTimeoutTimestamp } = this.additionalData;
		const retryOf = hooks.retryOf ?? null;
		if (this.getNodeParameter('failsFirst', 0) && retryOf === null) throw new Error('As asked');
		const holdMs = this.getNodeParameter('holdMs', 0);
		if (holdMs > 0) await new Promise((resolve) => void setTimeout(resolve, holdMs));
		const now = Date.now();
		const sleepMs = this.getNodeParameter('sleepMs', 0);
		if (sleepMs > 0) await this.putExecutionToWait(new Date(now + sleepMs));
		return [[{ json: { now, retryOf, timeLeftMs: executionTimeoutTimestamp - now } }]];
	}
}

module.exports = { Trial };

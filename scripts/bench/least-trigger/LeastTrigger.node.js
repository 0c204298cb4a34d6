/** Hands the body of a call on: nothing that a third-party trigger does can cost n8n less. */
class LeastTrigger {
	description = {
		displayName: 'Least Trigger',
		name: 'leastTrigger',
		group: ['trigger'],
		version: 1,
		description: 'Hands a body on',
		defaults: { name: 'Least Trigger' },
		inputs: [],
		outputs: ['main'],
		webhooks: [
			{
				name: 'default',
				httpMethod: 'POST',
				responseMode: 'onReceived',
				responseData: '',
				path: 'least',
			},
		],
		properties: [],
	};

	async webhook() {
		return {
			workflowData: [[{ json: this.getBodyData() }]],
			webhookResponse: { accepted: true },
		};
	}
}

module.exports = { LeastTrigger };

import { resumeUrl } from '../../../nodes/MediaGeneration/suspend/resumeWebhook';
import { contextOf } from './checks';

describe('the address that resumes an execution', () => {
	it.each([
		['https://n8n.test/webhook-waiting/12', 'https://n8n.test/webhook-waiting/12/callback'],
		[
			'https://n8n.test/webhook-waiting/12?signature=a%2Fb',
			'https://n8n.test/webhook-waiting/12/callback?signature=a%2Fb',
		],
		['http://n8n.test/n8n/webhook-waiting/12/', 'http://n8n.test/n8n/webhook-waiting/12/callback'],
	])('made of %s is %s', (url, expected) => {
		expect(resumeUrl(contextOf({}, { evaluateExpression: () => url }))).toBe(expected);
	});

	it('is made of what n8n calls its own', () => {
		expect(resumeUrl(contextOf())).toMatch(/^https:\/\/n8n\.test\/webhook-waiting\/1\/callback/);
	});
});

import { resumeCallbackUrl, resumeUrl } from '../../../nodes/MediaGeneration/suspend/resumeWebhook';
import { CREDENTIAL } from '../../workflow/engine';
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

	it('is none where n8n has no public address with https:// or http:// before it', () => {
		const evaluateExpression = () => 'n8n.test/webhook-waiting/12';
		expect(resumeUrl(contextOf({}, { evaluateExpression }))).toBe('');
		expect(resumeCallbackUrl(contextOf({}, { evaluateExpression }), CREDENTIAL)).toBeUndefined();
	});

	it('is made of what n8n calls its own', () => {
		expect(resumeUrl(contextOf())).toMatch(/^https:\/\/n8n\.test\/webhook-waiting\/1\/callback/);
	});
});

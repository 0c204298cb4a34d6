import { UserError } from 'n8n-workflow';

import { forbiddenAddress } from '../../../nodes/MediaGeneration/shared/privateAddress';

/** As n8n's protection throws it, and its request helper wraps it. */
function refusal(name: string, fields: object): Error {
	const error = Object.assign(new UserError('The request was blocked'), fields);
	error.name = name;
	return new Error('Request failed', { cause: error });
}

it.each([
	['SsrfBlockedIpError', { ip: '10.0.0.7' }, '10.0.0.7'],
	['SsrfBlockedIpError', { ip: '10.0.0.7', hostname: 'media.lan' }, 'media.lan'],
	['SsrfBlockedHostnameError', { hostname: 'media.lan' }, 'media.lan'],
])('says what was refused and what to allow after %s with %j', (name, fields, host) => {
	const told = forbiddenAddress(
		refusal(name, fields),
		'n8n does not let this node call the service',
	);
	expect(told?.message).toBe('n8n does not let this node call the service');
	expect(told?.description).toContain(`refused '${host}'`);
	expect(told?.description).toContain('N8N_SSRF_ALLOWED_HOSTNAMES');
});

it.each([new Error('socket hang up'), refusal('UserError', { ip: '10.0.0.7' }), undefined])(
	'says nothing where it was something else (%p)',
	(error) => {
		expect(forbiddenAddress(error, 'n8n does not let this node call the service')).toBeUndefined();
	},
);

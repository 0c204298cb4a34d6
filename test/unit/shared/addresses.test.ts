import { UserError } from 'n8n-workflow';

import { forbiddenAddress, isOutOfReach } from '../../../nodes/MediaGeneration/shared/addresses';

const WHAT = 'n8n does not let this node call the service';

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
	const told = forbiddenAddress(refusal(name, fields), WHAT);
	expect(told?.message).toBe(WHAT);
	expect(told?.description).toContain(`refused '${host}'`);
	expect(told?.description).toContain('N8N_SSRF_ALLOWED_HOSTNAMES');
});

const OTHERS = [new Error('socket hang up'), refusal('UserError', { ip: '10.0.0.7' }), undefined];
it.each(OTHERS)('says nothing where it was something else (%p)', (error) => {
	expect(forbiddenAddress(error, WHAT)).toBeUndefined();
});

const PATH = '/webhook/3f1c2a/callback';

describe('a service on the internet', () => {
	const LOOPS = ['localhost:5678', 'n8n.localhost', '127.0.0.1:5678', '0.0.0.0:5678', '[::1]:5678'];
	const RANGES = ['10.1.2.3', '172.16.0.1', '172.31.255.1', '192.168.1.20:5678', '169.254.1.1'];
	// Those of carriers, and of Tailscale.
	const SHARED = ['100.64.0.1', '100.101.102.103:5678', '100.127.255.254'];
	const HOMES = ['nas.local', 'n8n.lan:5678', 'n8n.home.arpa'];
	it.each([...LOOPS, ...RANGES, ...SHARED, ...HOMES, '[fd12:3456::1]', 'n8n:5678'])(
		'cannot reach %s',
		(host) => {
			expect(isOutOfReach(`http://${host}${PATH}`, 'https://api.example.com/v1')).toBe(true);
		},
	);

	const NAMES = ['n8n.example.com', 'localhost.example.com', '10.example.com'];
	const NEIGHBOURS = ['172.32.0.1', '11.0.0.1', '100.63.1.1', '100.128.1.1', 'n8n.lan.example.com'];
	it.each([...NAMES, ...NEIGHBOURS, '[2001:db8::1]'])('can reach %s', (host) => {
		expect(isOutOfReach(`https://${host}${PATH}`, 'https://api.example.com/v1')).toBe(false);
	});
});

const NEAR = ['http://localhost:4010', 'http://127.0.0.1:4010', 'http://service:4010/v1'];
it.each(NEAR)('a service at %s, in the same machine or network, can reach localhost', (baseUrl) => {
	expect(isOutOfReach(`http://localhost:5678${PATH}`, baseUrl)).toBe(false);
});

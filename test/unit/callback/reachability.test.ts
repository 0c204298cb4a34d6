import { isOutOfReach } from '../../../nodes/MediaGeneration/callback/callbackUrl';

const SERVICE = 'https://api.example.com/v1';

describe('a callback address is out of reach', () => {
	it.each([
		'http://localhost:5678/webhook/a/callback',
		'http://n8n.localhost/webhook/a/callback',
		'http://127.0.0.1:5678/webhook/a/callback',
		'http://0.0.0.0:5678/webhook/a/callback',
		'http://[::1]:5678/webhook/a/callback',
		'http://[fd12:3456::1]/webhook/a/callback',
		'http://10.1.2.3/webhook/a/callback',
		'http://172.16.0.1/webhook/a/callback',
		'http://172.31.255.1/webhook/a/callback',
		'http://192.168.1.20:5678/webhook/a/callback',
		'http://169.254.1.1/webhook/a/callback',
		'http://n8n:5678/webhook/a/callback',
		'http://nas.local/webhook/a/callback',
	])('%s of a service on the internet', (address) => {
		expect(isOutOfReach(address, SERVICE)).toBe(true);
	});
});

describe('a callback address is within reach', () => {
	it.each([
		'https://n8n.example.com/webhook/a/callback',
		'https://localhost.example.com/webhook/a/callback',
		'https://10.example.com/webhook/a/callback',
		'http://172.32.0.1/webhook/a/callback',
		'http://11.0.0.1/webhook/a/callback',
		'http://[2001:db8::1]/webhook/a/callback',
	])('%s of a service on the internet', (address) => {
		expect(isOutOfReach(address, SERVICE)).toBe(false);
	});

	it.each(['http://localhost:4010', 'http://127.0.0.1:4010', 'http://service:4010/v1'])(
		'on the same machine or network as the service at %s',
		(baseUrl) => {
			expect(isOutOfReach('http://localhost:5678/webhook/a/callback', baseUrl)).toBe(false);
		},
	);
});

import { CallbackCredentials } from '../../../nodes/MediaGeneration/callback/credentialCache';
import { API_KEY, webhookContext, type Express, TRIGGER } from '../../workflow/engine';
import { FakeClock } from '../support';

const SECOND = 1000;

/** The trigger's context on each call, and how often its credential was looked up through all of them. */
function trigger(id = 'trigger') {
	const credential = { baseUrl: 'https://api.example.com', apiKey: API_KEY };
	const seen = { lookUps: 0, fail: false, credential };
	const call = () => {
		const express = { httpRequest: {}, httpResponse: {} } as unknown as Express;
		const context = webhookContext({ node: { ...TRIGGER, id }, credential }, express);
		const lookUp = context.getCredentials.bind(context);
		context.getCredentials = async <T extends object>(type: string): Promise<T> => {
			seen.lookUps++;
			if (seen.fail) throw new Error('The database is away');
			return (await lookUp(type)) as T;
		};
		return context;
	};
	return { call, seen };
}

it('is looked up once for the callbacks of a minute', async () => {
	const clock = new FakeClock();
	const credentials = new CallbackCredentials(clock);
	const { call, seen } = trigger();
	for (let count = 0; count < 6; count++) {
		expect(await credentials.get(call())).toEqual(seen.credential);
		clock.pass(9 * SECOND);
	}
	expect(seen.lookUps).toBe(1);
});

it('is looked up again after a minute, so that a changed base URL is noticed', async () => {
	const clock = new FakeClock();
	const credentials = new CallbackCredentials(clock);
	const { call, seen } = trigger();
	await credentials.get(call());
	seen.credential.baseUrl = 'https://new.example.com';
	clock.pass(60 * SECOND);
	expect(await credentials.get(call())).toHaveProperty('baseUrl', 'https://new.example.com');
});

it('is looked up once for callbacks that come together', async () => {
	const credentials = new CallbackCredentials(new FakeClock());
	const { call, seen } = trigger();
	await Promise.all(Array.from({ length: 10 }, async () => await credentials.get(call())));
	expect(seen.lookUps).toBe(1);
});

it('is refreshed at once where a token does not match, and then at most every two seconds', async () => {
	const clock = new FakeClock();
	const credentials = new CallbackCredentials(clock);
	const { call, seen } = trigger();
	await credentials.get(call());
	const lookUps: number[] = [];
	for (const pause of [0, 1.9, 0.1, 1.9, 0.1]) {
		clock.pass(pause * SECOND);
		await credentials.get(call(), true);
		lookUps.push(seen.lookUps);
	}
	expect(lookUps).toEqual([2, 2, 3, 3, 4]);
});

it('is kept for each trigger by itself', async () => {
	const credentials = new CallbackCredentials(new FakeClock());
	const [first, second] = [trigger('first'), trigger('second')];
	await credentials.get(first.call());
	await credentials.get(second.call());
	expect([first.seen.lookUps, second.seen.lookUps]).toEqual([1, 1]);
});

it('whose look-up failed is looked up again by the next callback', async () => {
	const credentials = new CallbackCredentials(new FakeClock());
	const { call, seen } = trigger();
	seen.fail = true;
	await expect(credentials.get(call())).rejects.toThrow('The database is away');
	seen.fail = false;
	expect(await credentials.get(call())).toEqual(seen.credential);
});

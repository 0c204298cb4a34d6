import {
	type Deliveries,
	FINAL_AFTER_MS,
	isUndeliverable,
	noteAnswer,
	type Refusal,
} from '../../../nodes/MediaGeneration/callback/delivery';
import {
	asRecipient,
	signedAddress,
} from '../../../nodes/MediaGeneration/callback/callbackAddress';
import { HOUR, MINUTE } from '../../durations';
import { API_KEY, executeContext, TRIGGER_PATH } from '../../workflow/engine';

type Kind = Refusal['kind'];

/** What is known after these answers of a trigger, each with its minute. */
function after(...answers: Array<[minute: number, kind: Kind]>): Deliveries {
	const deliveries: Deliveries = {};
	for (const [minute, kind] of answers)
		noteAnswer(deliveries, { kind, words: '' }, minute * MINUTE);
	return deliveries;
}

describe('a task cannot be delivered', () => {
	it.each<[string, Array<[number, Kind]>, number]>([
		[
			'when a trigger has refused it for a quarter of an hour, long before its time is up',
			[
				[0, 'refused'],
				[7, 'refused'],
				[15, 'refused'],
			],
			24 * HOUR,
		],
		[
			'when its time is up and the trigger cannot answer, or does not start',
			[
				[0, 'notNow'],
				[60, 'notNow'],
			],
			HOUR,
		],
		[
			'when its time is up, refused or not answered in turns',
			[
				[0, 'refused'],
				[10, 'notNow'],
				[20, 'refused'],
				[30, 'notNow'],
			],
			20 * MINUTE,
		],
	])('%s', (_when, answers, until) => {
		expect(isUndeliverable(after(...answers), until)).toBe(true);
	});
});

describe('a task is delivered again', () => {
	it.each<[string, Array<[number, Kind]>, number]>([
		['at first', [], 24 * HOUR],
		[
			'while the trigger has refused it for less than a quarter of an hour',
			[
				[0, 'refused'],
				[14, 'refused'],
			],
			MINUTE,
		],
		[
			'while another answer came in between',
			[
				[0, 'refused'],
				[8, 'notNow'],
				[16, 'refused'],
			],
			24 * HOUR,
		],
		[
			'while the trigger cannot answer, or does not start, as long as its time',
			[
				[0, 'notNow'],
				[23 * 60, 'notNow'],
			],
			24 * HOUR,
		],
		[
			'for a quarter of an hour after n8n was down for longer than its time',
			[
				[0, 'notNow'],
				[14, 'notNow'],
			],
			-HOUR,
		],
	])('%s', (_while, answers, until) => {
		expect(isUndeliverable(after(...answers), until)).toBe(false);
	});
});

it('an answer is final after a quarter of an hour', () => expect(FINAL_AFTER_MS).toBe(15 * MINUTE));

describe('the address of a recipient', () => {
	it("has n8n's present address, the token of the present key, and the reference", () => {
		const recipient = { address: '/3f1c2a/callback?reference=row+7' };
		const { origin, pathname, searchParams } = new URL(
			signedAddress(executeContext(), recipient, API_KEY),
		);
		expect([origin, pathname]).toEqual(['https://n8n.test', TRIGGER_PATH]);
		expect([...searchParams.keys()]).toEqual(['token', 'reference']);
		expect(searchParams.get('reference')).toBe('row 7');
	});

	it('of another n8n stays', () => {
		const address = signedAddress(executeContext(), { address: 'https://other.test/x' }, API_KEY);
		expect(address).toMatch(/^https:\/\/other\.test\/x\?token=/);
	});
});

it.each([undefined, '', 'x', {}, { address: 7 }, []])('%j is no recipient', (value) => {
	expect(asRecipient(value)).toBeUndefined();
});

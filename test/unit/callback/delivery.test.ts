import {
	asRecipient,
	type Deliveries,
	type DeliveryAnswer,
	endOfDeliveries,
	FINAL_AFTER_MS,
	isJustTaken,
	noteAnswer,
	signedAddress,
} from '../../../nodes/MediaGeneration/callback/delivery';
import { HOUR, MINUTE } from '../../durations';
import { API_KEY, executeContext, TRIGGER_PATH } from '../../workflow/engine';

type Kind = DeliveryAnswer['kind'];

/** What is known after these answers of a trigger, each with its minute. */
function after(...answers: Array<[minute: number, kind: Kind]>): Deliveries {
	const deliveries: Deliveries = {};
	for (const [minute, kind] of answers) noteAnswer(deliveries, { kind }, minute * MINUTE);
	return deliveries;
}

const end = (deliveries: Deliveries, { until = 24 * HOUR, hasLedger = true } = {}) =>
	endOfDeliveries(deliveries, { until, hasLedger });

describe('a task ends', () => {
	it.each<[string, Array<[number, Kind]>, { until?: number; hasLedger?: boolean }, string]>([
		['when its event is not selected', [[0, 'notSelected']], {}, 'result'],
		['when a trigger without a ledger has it', [[0, 'taken']], { hasLedger: false }, 'result'],
		[
			'when a trigger has said that it has it for a quarter of an hour more than its downloads may take',
			[
				[0, 'taken'],
				[75, 'taken'],
			],
			{},
			'result',
		],
		[
			'when a trigger has refused it for a quarter of an hour, long before its time is up',
			[
				[0, 'refused'],
				[7, 'refused'],
				[15, 'refused'],
			],
			{},
			'error',
		],
		[
			'when its time is up and the trigger cannot answer',
			[
				[0, 'notNow'],
				[60, 'notNow'],
			],
			{ until: HOUR },
			'error',
		],
		[
			'when its time is up, refused or not answered in turns',
			[
				[0, 'refused'],
				[10, 'notNow'],
				[20, 'refused'],
				[30, 'notNow'],
			],
			{ until: 20 * MINUTE },
			'error',
		],
	])('%s', (_when, answers, rule, expected) => {
		expect(end(after(...answers), rule)).toBe(expected);
	});
});

describe('a task is delivered again', () => {
	it.each<[string, Array<[number, Kind]>, { until?: number; hasLedger?: boolean }]>([
		['at first', [], {}],
		[
			'while a trigger has it and its ledger does not say so yet',
			[
				[0, 'taken'],
				[74, 'taken'],
			],
			{},
		],
		[
			'while the trigger has refused it for less than a quarter of an hour',
			[
				[0, 'refused'],
				[14, 'refused'],
			],
			{ until: MINUTE },
		],
		[
			'while another answer came in between',
			[
				[0, 'refused'],
				[8, 'taken'],
				[16, 'refused'],
			],
			{},
		],
		[
			'while the trigger cannot answer, as long as its time',
			[
				[0, 'notNow'],
				[23 * 60, 'notNow'],
			],
			{},
		],
		[
			'for a quarter of an hour after n8n was down for longer than its time',
			[
				[0, 'notNow'],
				[14, 'notNow'],
			],
			{ until: -HOUR },
		],
	])('%s', (_while, answers, rule) => {
		expect(end(after(...answers), rule)).toBeUndefined();
	});
});

it('an answer is final after a quarter of an hour', () => expect(FINAL_AFTER_MS).toBe(15 * MINUTE));

it('what was taken just now starts within a minute', () => {
	expect(isJustTaken(after([0, 'refused'], [1, 'taken']))).toBe(true);
	expect(isJustTaken(after([0, 'taken'], [1, 'taken']))).toBe(false);
	expect(isJustTaken(undefined)).toBe(false);
});

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

import { UserError } from 'n8n-workflow';

import { type FailedCreate, maySendAgain } from '../../../nodes/MediaGeneration/create/createTask';
import {
	explainStatus,
	ServiceError,
	type ServiceErrorKind,
} from '../../../nodes/MediaGeneration/service/serviceError';

const status = (statusCode: number, retryAfterMs?: number) =>
	new ServiceError(explainStatus(statusCode, undefined)[0], 'So it is', {
		statusCode,
		retryAfterMs,
	});

it.each<[ServiceErrorKind, FailedCreate]>([
	['unreachable', 'sendAgain'],
	['noAnswer', 'unknown'],
	['unexpectedAnswer', 'unknown'],
])('a create that ended with %s: %s', (kind, expected) => {
	expect(maySendAgain(new ServiceError(kind, 'So it is'))).toBe(expected);
});

it.each<[number, number | undefined, FailedCreate]>([
	[429, undefined, 'sendAgain'],
	[429, 1000, 'sendAgain'],
	[503, 1000, 'sendAgain'],
	[503, undefined, 'unknown'],
	[500, 1000, 'unknown'],
	[502, undefined, 'unknown'],
	[408, undefined, 'unknown'],
	[303, undefined, 'unknown'],
	[302, undefined, 'refused'],
	[400, undefined, 'refused'],
	[401, undefined, 'refused'],
	[402, undefined, 'refused'],
	[403, undefined, 'refused'],
	[404, undefined, 'refused'],
	[422, undefined, 'refused'],
])(
	'a create that was answered %i, with a Retry-After of %s ms: %s',
	(code, retryAfterMs, expected) => {
		expect(maySendAgain(status(code, retryAfterMs))).toBe(expected);
	},
);

it('a create that n8n itself refused to send was not taken, and nothing is known after any other error', () => {
	expect(maySendAgain(new UserError('No'))).toBe('refused');
	expect(maySendAgain(new Error('What'))).toBe('unknown');
});

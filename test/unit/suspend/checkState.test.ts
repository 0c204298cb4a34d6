import type { IWebhookFunctions } from 'n8n-workflow';

import {
	checkNote,
	noteCheck,
	readCheck,
	readDone,
} from '../../../nodes/MediaGeneration/suspend/checkState';
import { storeInput } from '../../../nodes/MediaGeneration/suspend/suspendRun';
import { executeContext } from '../../workflow/engine';
import { contextOf } from './checks';

it.each([
	['results', [{ json: { taskId: 'task-1' } }, { json: {} }]],
	['a result with a field of the user', [{ json: { check: { model: 'Submariner' } } }]],
	['a result with a field of that name', [{ json: { taskId: 'x', mediaGenerationCheck: {} } }]],
	['nothing', []],
])('the state of the checks is not in %s', (_what, items) => {
	expect(readCheck(items)).toBeUndefined();
});

it('what is stored in place of the input stays, although n8n empties the list that the node returns', () => {
	const execution = contextOf();
	const items = [{ json: { taskId: 'task-1' } }];
	storeInput(execution, items);
	expect(execution.getExecuteData().data).toEqual({ main: [items] });
	items.length = 0;
	expect(execution.getExecuteData().data.main?.[0]).toHaveLength(1);
});

const NAMES = ['Media', 'a "name"', '{{ $json.x }}', 'two\u2028lines', 'back\\slash'];
it.each(NAMES)('what a suspended run has noted is found by the name of its node: %s', (name) => {
	const context = executeContext({ node: { name }, credential: { baseUrl: '', apiKey: '' } });
	const note = { url: 'https://n8n.test', taskIds: ['task-1'] };
	noteCheck(context, note);
	expect(checkNote(context as unknown as IWebhookFunctions)).toMatchObject(note);
});

it('a result with a field of the user is not the end of a check, whatever its name is', () => {
	const row = { taskId: 'x', mediaGenerationDone: { version: 1 } };
	expect(readDone([{ json: row }])).toBeUndefined();
});

import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { hasTriesLeft } from '../../../nodes/MediaGeneration/report/ifSomeFail';

/** The tries of one node: its context is stored with the execution, and a retry of the execution sees it too. */
const tries =
	(node: IDataObject, store: IDataObject = {}) =>
	(count: number, executionId = '1', $runIndex = 0) =>
		Array.from({ length: count }, () =>
			hasTriesLeft({
				getNode: () => node,
				getContext: () => store,
				getExecutionId: () => executionId,
				getWorkflowDataProxy: () => ({ $runIndex }),
			} as unknown as IExecuteFunctions),
		);

describe('the tries that are left', () => {
	it.each([
		[{}, [false]],
		[{ retryOnFail: false, maxTries: 3 }, [false]],
		[{ retryOnFail: true }, [true, true, false]],
		[{ retryOnFail: true, maxTries: 2 }, [true, false]],
		[{ retryOnFail: true, maxTries: 1 }, [true, false]],
		[{ retryOnFail: true, maxTries: 99 }, [true, true, true, true, false]],
	])('are as many as n8n makes of %j', (node, expected) => {
		expect(tries(node)(expected.length)).toEqual(expected);
	});

	it('begin anew in each round of a loop, and in a retry of the execution', () => {
		const next = tries({ retryOnFail: true, maxTries: 2 });
		expect([next(2), next(2, '1', 1), next(2, '2', 1)]).toEqual(Array(3).fill([true, false]));
	});

	it('leave nothing in the context where nothing is tried again', () => {
		const store = {};
		tries({}, store)(1);
		expect(store).toEqual({});
	});
});

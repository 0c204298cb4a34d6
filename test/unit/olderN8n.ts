/** What the `n8n-workflow` of n8n 1 does not have. */
export const BEFORE_N8N_2 = 'validateWorkflowHasTriggerLikeNode';

/** What that of n8n before 2.41 does not have. */
export const BEFORE_2_41 = 'WAIT_FOR_SUB_EXECUTION';

/**
 * Loads a module as an older n8n does.
 *
 * @param missing what the `n8n-workflow` of that n8n does not have
 */
export function onOlderN8n<T>(missing: string, load: () => T): T {
	const loaded: T[] = [];
	jest.isolateModules(() => {
		jest.doMock('n8n-workflow', () => {
			const { [missing]: _, ...older } =
				jest.requireActual<Record<string, unknown>>('n8n-workflow');
			return older;
		});
		loaded.push(load());
		jest.dontMock('n8n-workflow');
	});
	const [module] = loaded;
	if (module === undefined) throw new Error('Not loaded');
	return module;
}

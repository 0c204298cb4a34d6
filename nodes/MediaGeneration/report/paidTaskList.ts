const GET = '. Task → Get fetches the results without paying again';
const WAIT = '. Task → Wait fetches the results without paying again';

/** What the message says about one task or many tasks of a state: what they cost, and how to get the results. */
const MEANINGS: Array<[state: string, one: string, many: string, next?: string]> = [
	['SUCCESS', 'succeeded and is paid for', 'succeeded and are paid for', GET],
	[
		'PENDING',
		'is not finished, and is billed if it succeeds',
		'are not finished, and are billed if they succeed',
		WAIT,
	],
	['not read again', 'was created in an earlier try', 'were created in an earlier try', WAIT],
	[
		'CHARGED',
		'failed, and the service says that it charged for it',
		'failed, and the service says that it charged for them',
	],
	['FAILURE', 'failed, which is usually free', 'failed, which is usually free'],
];

/** A task that a run has created. */
export interface PaidTask {
	taskId: string;
	/** Its state; undefined if this try knows no more of it. */
	state?: string | undefined;
	/** The credits that the service says it charged. */
	credits?: number | null | undefined;
}

const meaningOf = ({ state, credits }: PaidTask): string =>
	state === 'FAILURE' && (credits ?? 0) > 0 ? 'CHARGED' : (state ?? 'not read again');

/**
 * The tasks that a run has created. Whatever ends the run, its message names them.
 *
 * @param tasks in the order of creation
 * @param unanswered the input items whose create was sent, and whose answer was lost
 * @returns all ids by what they cost, and how to fetch them; then what may have to be paid; undefined if nothing
 */
export function describePaidTasks(
	tasks: readonly PaidTask[],
	unanswered: readonly number[] = [],
): string | undefined {
	const known = MEANINGS.flatMap(([meant, one, many, next = '']) => {
		const ids = tasks.filter((task) => meaningOf(task) === meant).map(({ taskId }) => taskId);
		if (ids.length === 0) return [];
		const what = ids.length === 1 ? `1 task ${one}` : `${ids.length} tasks ${many}`;
		return [`${what}${next}: ${ids.join(', ')}.`];
	});
	const items = unanswered.map((item) => item + 1).join(', ');
	const lost = `Sent, but the answer was lost: item ${items}. Their tasks may exist and may be billed once.`;
	return [...known, ...(items ? [lost] : [])].join(' ') || undefined;
}

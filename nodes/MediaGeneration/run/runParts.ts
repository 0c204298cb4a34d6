import type { IExecuteFunctions } from 'n8n-workflow';

import { AccountLimits } from '../create/accountLimits';
import { CreateQueue } from '../create/createQueue';
import { TaskCreator } from '../create/createTask';
import type { Journal } from '../create/journal';
import { createsIn } from '../plan/taskPlan';
import type { RunPlan } from '../plan/planRun';
import type { CreatedTaskList } from '../report/createdTaskList';
import type { Connection } from '../service/connect';
import { RequestGap, RequestSlots } from '../service/requestPace';
import type { Clock } from '../shared/clock';
import { ExpectedCallbacks } from '../suspend/expectedCallbacks';
import { Hold } from '../wait/hold';
import { TaskReader } from '../wait/taskReader';
import { HandedOverTasks } from './handedOverTasks';
import { createdTasks } from './runEnd';
import { UnfinishedTasks } from './unfinishedTasks';

/** What the items of one run share. */
export interface RunParts {
	context: IExecuteFunctions;
	/** Signs requests to a trigger. */
	apiKey: string;
	clock: Clock;
	queue: CreateQueue;
	creator: TaskCreator;
	journal: Journal;
	created: CreatedTaskList;
	slots: RequestSlots;
	reader: TaskReader;
	hold: Hold;
	deliveries: ExpectedCallbacks;
	/** The tasks whose items left at once. */
	unfinished: UnfinishedTasks;
	/** The tasks that the run holds no longer. */
	handedOver: HandedOverTasks;
	/** Whether an item has failed, and the node will stop. */
	isStopping: () => boolean;
	/** Called where an item fails: a node that stops creates nothing more. */
	stopCreating: () => void;
}

/** What the items ask of the run that they belong to. */
type Stops = Pick<RunParts, 'isStopping' | 'stopCreating'>;

/** Puts together what the items of one run share. */
export function makeRunParts(
	context: IExecuteFunctions,
	{ client, apiKey }: Connection,
	plan: RunPlan,
	journal: Journal,
	clock: Clock,
	stops: Stops,
): RunParts {
	const signal = context.getExecutionCancelSignal();
	const intervals = plan.items.map((item) => ('kind' in item ? item.pollIntervalMs : Infinity));
	const least = intervals.reduce((a, b) => Math.min(a, b), Infinity);
	const gap = new RequestGap(clock);
	const slots = new RequestSlots(gap, least, Math.min(plan.maxInFlight, plan.items.length));
	const queue = new CreateQueue(clock, new AccountLimits(), gap, signal);
	const created = createdTasks(journal);
	const hold = new Hold(clock, plan.suspendAfterMs, createsIn(plan.items));
	const reader = new TaskReader(context, client, created, hold, slots, clock, signal);
	return {
		context,
		apiKey,
		clock,
		queue,
		creator: new TaskCreator(context, client, queue, journal, stops.stopCreating, clock, signal),
		journal,
		created,
		slots,
		reader,
		hold,
		handedOver: new HandedOverTasks(context, slots, clock),
		deliveries: new ExpectedCallbacks(context, plan.checkIntervalMs, clock),
		unfinished: new UnfinishedTasks(queue, reader, gap, clock),
		...stops,
	};
}

import type { IDataObject } from 'n8n-workflow';

import type { OutputOptions } from '../report/outputOptions';

/** When a created task's item leaves the node. */
export type Completion = 'poll' | 'suspend' | 'trigger' | 'return';

export interface PlanBase {
	itemIndex: number;
	pollIntervalMs: number;
	/** Milliseconds to wait for the task, from the moment it is created. */
	timeoutMs: number;
	output: OutputOptions;
	/** Comes out with the task: what the user tells it by. */
	reference?: string;
}

export interface CreatePlan extends PlanBase {
	kind: 'create';
	completion: Completion;
	model: string;
	input: IDataObject;
	/** Binary data of the item that goes into `input` as a data URI, when the task is created and not before. */
	image?: { field: string; binaryPropertyName: string };
	/** Where the service calls back, token included. */
	webhookUrl?: string;
	/** US dollars; undefined where the price is not known. */
	estimatedCostUsd: number | undefined;
}

export interface ReadPlan extends PlanBase {
	kind: 'read';
	taskId: string;
	/** Whether to wait until the task is finished. */
	wait: boolean;
	/** The trigger that gets the task's callback once more, token included. */
	redeliverTo?: string;
	/** Whether the trigger is to start although it has started for the task before. */
	startAgain?: boolean;
}

export type ItemPlan = CreatePlan | ReadPlan;

/** What the user tells the task by, as a field of its item. */
export function referenceOf({ reference }: ItemPlan): IDataObject {
	return reference === undefined ? {} : { reference };
}

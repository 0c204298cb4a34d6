import type { IDataObject } from 'n8n-workflow';

import { MINUTE, SECOND } from '../../durations';
import type { Row } from '../../workflow/n8n/database';
import { fromStored } from '../../workflow/stored';
import { itemOf } from '../world/service';
import type { World } from '../world/world';
import { isEndUnstored, isOutOfDate, isPassedOver, setForwardMs } from './exceptions';
import type { Check } from './sentences';
import {
	firstOf,
	hasEnded,
	IN_DOUBT,
	inputsOf,
	isOf,
	isWaited,
	linkOf,
	REFUSED,
	runsOf,
} from './told';

/** A run that was retried after a stop ends with the error of the first, wherever its items have gone. */
const runsThatWentOn = (world: World) =>
	runsOf(world).filter(
		({ id, status, retryOf }) =>
			status === 'success' ||
			(status === 'error' &&
				retryOf !== undefined &&
				world.n8n.sunk.some(({ execution }) => execution === id)),
	);

/** A task that an item should name and does not: the node has learnt its id. */
function unsaidOf({ n8n, service }: World, execution: string, json: object, name: string) {
	const row = n8n.row(execution);
	const said = JSON.stringify(json);
	// n8n goes on by itself with some runs that were killed in a turn: the log has the ids of that turn.
	if (row?.isKilled && IN_DOUBT.test(said)) return undefined;
	// The retry that goes on names them.
	if (REFUSED.test(said)) return undefined;
	return service.tasks.find(
		(task) =>
			task.by === `execution ${execution}` &&
			task.item === name &&
			task.outcome === 'SUCCESS' &&
			task.toldTo !== undefined &&
			!said.includes(task.id),
	);
}

/** What is wrong with the order and the links of the node's output. */
function outputOf({ history }: World, row: Row): string[] {
	const { items, onError } = history.node;
	const run = fromStored(row.data).resultData.runData.Media?.at(-1);
	if (!run) return [];
	// Another node of the execution may have put out its items.
	if (run.error && onError === 'stopWorkflow') return [];
	const [first, errors] = [0, 1].map((output) => run.data?.main?.[output] ?? []);
	const all = [...(first ?? []), ...(errors ?? [])];
	if (all.length !== items) return [`execution ${row.id} puts out ${all.length} of ${items}`];
	// Of a node that failed as a whole n8n puts out what came in.
	if (run.error) return [];
	const inputs = inputsOf(row);
	const lists = onError === 'continueErrorOutput' ? [first ?? [], errors ?? []] : [all];
	return lists.flatMap((list) =>
		list.flatMap((item, position) => {
			const [earlier, index] = [linkOf(list[position - 1]), linkOf(item)];
			const name = itemOf(item.json.prompt);
			if (name !== '' && name !== itemOf(inputs[index]?.json.prompt)) {
				return [`execution ${row.id} links ${name} to item ${index}`];
			}
			return index > earlier ? [] : [`execution ${row.id} puts item ${index} after ${earlier}`];
		}),
	);
}

/** What who builds on the items, and on executions that end, relies on. Each brings what contradicts it. */
export const builder: Record<string, Check> = {
	'every item says what became of its task': (world) => {
		const { node, workflow, limitSeconds } = world.history;
		const nameOf = ({ prompt, second }: IDataObject) =>
			itemOf(workflow === 'in a row' ? second : prompt);
		// The items leave before n8n's time limit, and before a caller hangs up.
		const isEarly = limitSeconds > 0 || workflow === 'hangs up';
		const seconds = isEarly ? 0 : node.timeoutSeconds;
		const out = world.n8n.sunk.filter(({ node }) => node !== 'Sink' || isWaited(world.history));
		return out.flatMap(({ at, execution, items }) =>
			items.flatMap(({ json }) => {
				const task = world.service.task(String(json.taskId));
				if (!task) {
					// Of two nodes beside each other nothing tells whose item it is.
					if (workflow === 'beside') return [];
					const unsaid = unsaidOf(world, execution, json, nameOf(json));
					if (!unsaid || isPassedOver(world, execution) || isOutOfDate(world, execution)) return [];
					return [`execution ${execution} does not say what became of ${unsaid.id}`];
				}
				if (json.state === task.outcome) return [];
				// An error may come before the end of the task.
				if (json.timedOut !== true && json.error !== undefined) return [];
				// A run that sleeps goes by the wall clock, since other processes go on with it.
				const age = at - firstOf(world, task).createdAt + setForwardMs(world, execution);
				if (json.timedOut === true && age >= seconds * SECOND) return [];
				return [`execution ${execution} says ${task.id} is ${String(json.state)}, ${age} ms old`];
			}),
		);
	},

	'every run that waits goes on once': (world) => {
		// Both nodes that stand beside each other lead to the next one.
		if (!isWaited(world.history) || world.history.workflow === 'beside') return [];
		return runsThatWentOn(world).flatMap(({ id }) => {
			const on = world.n8n.sunk.filter(({ execution }) => execution === id);
			const places = new Set(on.map(({ node }) => node));
			return on.length === places.size && on.length > 0
				? []
				: [`execution ${id} goes on ${on.length} times`];
		});
	},

	'every item comes out once, in its order and linked': (world) =>
		world.history.workflow === 'loop'
			? []
			: runsThatWentOn(world)
					.filter(({ id }) => !isPassedOver(world, id))
					.flatMap((row) => outputOf(world, row)),

	'every execution comes to its end': (world) =>
		world.n8n.rows
			// Whether a caller goes on whose sub-workflow was killed is n8n's own.
			.filter((row) => !hasEnded(row) && row.start !== 'Call' && !isEndUnstored(world, row))
			.map(({ id, status }) => `execution ${id} is ${status}`),

	'a caller that hangs up after a minute has heard the ids of all tasks before': (world) => {
		const { workflow, ends, trouble } = world.history;
		if (workflow !== 'hangs up' || ends !== 'by itself') return [];
		// An execution that waits for a place hears nothing.
		if (/places?$/.test(world.history.n8n)) return [];
		if (trouble.some(({ what }) => what === 'database away')) return [];
		return world.n8n.rows
			.filter(({ start }) => start === 'Call')
			.flatMap((caller) => {
				const tookMs = (caller.endedAt ?? Infinity) - caller.begunAt;
				const child = world.n8n.rows.find((row) => row.caller?.executionId === caller.id);
				const unsaid = world.service.tasks.filter(
					(task) => child && isOf(child, task) && !caller.data.includes(task.id),
				);
				return [
					...(tookMs < MINUTE ? [] : [`execution ${caller.id} answers after ${tookMs / SECOND} s`]),
					...unsaid.map(({ id }) => `execution ${caller.id} does not name ${id}`),
				];
			});
	},
};

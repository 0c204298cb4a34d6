import { setTimeout as sleep } from 'node:timers/promises';
import type { INode } from 'n8n-workflow';
import { median } from 'simple-statistics';

import { node } from '../e2e/stage';
import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackToken';
import type { Bench } from './bench';
import {
	callAndStart,
	callAtOnce,
	callOnce,
	callOneByOne,
	finishedTasks,
	PAUSE_MS,
	type Series,
} from './calls';
import { type Entrance, openEntrance, openOurs, openWebhook } from './entrances';
import { remember } from './remembered';
import { limitOf, peerOf, type Row, rowsOf } from './results';

const REMEMBERED = [0, 10_000, 100_000];
const QUICK_REMEMBERED = [0, 1_000];

const ONE_BY_ONE = 30;
/** n8n lists no more executions at once. */
const AT_ONCE = 100;

interface Entrances {
	ours: Entrance;
	least: Entrance;
	webhook: Entrance;
	/** Where calls are refused: ours by its token, the least one because it is asked to. */
	refused: { ours: string; least: string };
}

type Kind = 'accepted' | 'duplicate' | 'refused';

/** Figures of one run, by what was measured. */
type Figures = Map<string, number[]>;

/** Callbacks to the trigger, beside the least third-party trigger and n8n's own Webhook node. */
export async function measureCallbacks(bench: Bench): Promise<Row[]> {
	const { options, stage, log } = bench;
	const sizes = options.quick ? QUICK_REMEMBERED : REMEMBERED;
	const entrances = await openEntrances(bench);
	const figures: Figures = new Map();
	// The first calls are slower than all later ones.
	await measureOnce(bench, entrances, new Map(), 0, 5);
	for (let run = 1; run <= options.runs; run++) {
		// There and back: what n8n has stored grows from series to series.
		for (const size of run % 2 === 1 ? sizes : sizes.toReversed()) {
			const { trigger, workflowId } = entrances.ours;
			await remember(stage.n8n, workflowId, trigger.id, size);
			log(`callbacks, run ${run}, ${size} tasks remembered`);
			await measureOnce(bench, entrances, figures, size, options.quick ? 8 : ONE_BY_ONE, run);
			await remember(stage.n8n, workflowId, trigger.id, 0);
		}
	}
	return sizes.flatMap((size) => tableOf(figures, size));
}

/** One workflow for each trigger, with a node behind it that does nothing. */
async function openEntrances({ stage }: Bench): Promise<Entrances> {
	const ours = await openOurs(stage);
	const least: INode = {
		...node('n8n-nodes-least-trigger.leastTrigger', 'Least', {}),
		webhookId: crypto.randomUUID(),
	};
	const leastEntrance = await openEntrance(stage, least, stage.client.webhookPath(least, 'least'));
	return {
		ours: { ...ours, url: callbackAddress(ours.url, stage.service.apiKey) },
		least: leastEntrance,
		webhook: await openWebhook(stage, 'Webhook'),
		refused: {
			ours: `${ours.url}?token=${'0'.repeat(64)}`,
			least: `${leastEntrance.url}?refuse=1`,
		},
	};
}

async function measureOnce(
	bench: Bench,
	{ ours, least, webhook, refused }: Entrances,
	figures: Figures,
	remembered: number,
	oneByOne: number,
	run = 0,
): Promise<void> {
	const { options } = bench;
	const atOnce = options.quick ? 40 : AT_ONCE;
	const note = (who: string, kind: Kind, { answerMs, cpuMs, startMs }: Series) => {
		add(figures, key(remembered, who, kind, 'answer'), answerMs);
		add(figures, key(remembered, who, kind, 'cpu'), cpuMs);
		if (startMs !== undefined) add(figures, key(remembered, who, kind, 'start'), startMs);
	};
	const noteRate = (who: string, kind: Kind, perSecond: number) =>
		add(figures, key(remembered, who, kind, 'rate'), perSecond);

	bench.stage.service.clear();
	const [first = ''] = finishedTasks(bench, 1);
	await callOneByOne(bench, ours.url, [first], 200);
	const again = (count: number) => Array.from({ length: count }, () => first);
	// Whoever is always last would gain or lose by what goes on meanwhile.
	const inTurn = [ours, least, webhook];
	if (run % 2 === 0) inTurn.reverse();
	for (const entrance of inTurn) {
		const tasks = finishedTasks(bench, oneByOne);
		note(entrance.name, 'accepted', await callAndStart(bench, entrance, tasks));
	}
	const nothingStarted: Array<{ who: string; kind: Kind; url: string; status: number }> = [
		{ who: 'Ours', kind: 'duplicate', url: ours.url, status: 200 },
		{ who: 'Ours', kind: 'refused', url: refused.ours, status: 401 },
		{ who: 'Least', kind: 'refused', url: refused.least, status: 401 },
	];
	// In turn: a machine that is slower for a while is slower for all of them.
	const answers: Figures = new Map();
	for (let call = 0; call < oneByOne; call++) {
		for (const { who, kind, url, status } of nothingStarted) {
			// n8n prepares an expression engine for the next call, whoever's that is.
			await sleep(PAUSE_MS);
			add(answers, key(remembered, who, kind, 'answer'), await callOnce(url, first, status));
		}
	}
	for (const [name, ms] of answers) add(figures, name, median(ms));
	for (const { name, url, workflowId } of inTurn) {
		const tasks = finishedTasks(bench, atOnce);
		const { perSecond } = await callAtOnce(bench, url, tasks, 200, workflowId);
		noteRate(name, 'accepted', perSecond);
	}
	for (const { who, kind, url, status } of nothingStarted) {
		const { perSecond, cpuMs } = await callAtOnce(bench, url, again(atOnce), status);
		noteRate(who, kind, perSecond);
		add(figures, key(remembered, who, kind, 'cpu'), cpuMs);
	}
}

const key = (...parts: Array<string | number>) => parts.join(' ');

function add(figures: Figures, name: string, value: number): void {
	figures.set(name, [...(figures.get(name) ?? []), value]);
}

function tableOf(figures: Figures, remembered: number): Row[] {
	const values = (who: string, kind: Kind, what: string, size = remembered) =>
		figures.get(key(size, who, kind, what)) ?? [];
	const behind = remembered === 0 ? '' : `, ${remembered.toLocaleString('en')} tasks remembered`;
	const rowOf = rowsOf('callback');
	const against =
		(name: string, who: string, whose: Kind, suffix = '') =>
		(kind: Kind, what: string, text: string, unit: string): Row => {
			const nothing = () => median(values('Ours', kind, what, 0));
			return rowOf(
				`${kind}-${what}-${remembered}${suffix}`,
				text + behind,
				unit,
				values('Ours', kind, what),
				{
					...peerOf(name, values(who, whose, what)),
					...(remembered > 0 && limitOf('ours, nothing remembered', nothing())),
				},
			);
		};
	const least = against('least third-party trigger', 'Least', 'accepted');
	const webhook = against("n8n's Webhook node", 'Webhook', 'accepted', '-webhook');
	const refusal = against('least refusal', 'Least', 'refused');
	return [
		...[least, webhook].map((row) => row('accepted', 'answer', 'Callback until its answer', 'ms')),
		...[least, webhook].map((row) =>
			row('accepted', 'start', 'Callback until the workflow goes on', 'ms'),
		),
		...[least, webhook].map((row) => row('accepted', 'rate', 'Callbacks a second', '/s')),
		least('accepted', 'cpu', "n8n's CPU a callback", 'ms'),
		refusal('duplicate', 'answer', 'Duplicate until its answer', 'ms'),
		refusal('duplicate', 'rate', 'Duplicates a second', '/s'),
		refusal('duplicate', 'cpu', "n8n's CPU a duplicate", 'ms'),
		refusal('refused', 'answer', 'Refusal until its answer', 'ms'),
		refusal('refused', 'rate', 'Refusals a second', '/s'),
		refusal('refused', 'cpu', "n8n's CPU a refusal", 'ms'),
	];
}

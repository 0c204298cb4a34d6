import {
	type IDataObject,
	type INode,
	type INodeParameters,
	type INodeProperties,
	NodeHelpers,
} from 'n8n-workflow';
import { runInNewContext } from 'node:vm';

import { MediaGeneration } from '../../../nodes/MediaGeneration/MediaGeneration.node';
import { MediaGenerationTrigger } from '../../../nodes/MediaGeneration/MediaGenerationTrigger.node';
import { markOf } from '../../../nodes/MediaGeneration/service/inputExample';
import { executeContext } from '../../workflow/engine';
import { read } from '../repository';

const { description } = new MediaGeneration();
const [collection] = description.properties.filter(({ name }) => name === 'options');
const options = (collection?.options ?? []) as INodeProperties[];

/** So many characters of a subtitle n8n's canvas shows. */
const CANVAS = 30;

test.each([
	['an own model, without its provider', {}, 'image: generate · a-model-with-a-long-name'],
	['a dry run, before what n8n cuts off', { dryRun: true }, 'dry run · image: generate'],
])('the subtitle on the canvas shows %s', (_what, given, expected) => {
	const parameters = { resource: 'image', operation: 'generate', options: given };
	const $parameter = { ...parameters, model: 'acme/a-model-with-a-long-name' };
	const [, code = ''] = /^=\{\{(.*)\}\}$/.exec(description.subtitle ?? '') ?? [];
	const subtitle = String(runInNewContext(code, { $parameter }));
	expect(subtitle.slice(0, CANVAS)).toContain(expected.slice(0, CANVAS));
});

const nodeWith = (parameters: INodeParameters) =>
	({ type: description.name, typeVersion: 1, parameters }) as INode;

/** What the panel shows of a node with these parameters, in order. */
function shown(given: INodeParameters): string[] {
	const node = nodeWith(given);
	const { properties } = description;
	const all = NodeHelpers.getNodeParameters(properties, given, true, false, node, description);
	const parameters = all ?? {};
	return description.properties
		.filter((each) => NodeHelpers.displayParameter(parameters, each, node, description))
		.map(({ name }) => name);
}

/** The options that the panel offers. */
function offered(parameters: INodeParameters): string[] {
	const all = { options: {} as INodeParameters, ...parameters };
	return options
		.filter((option) =>
			NodeHelpers.displayParameter(all.options, option, nodeWith(all), description, all),
		)
		.map(({ displayName }) => displayName);
}

it('the picture and the length of a video stand above the fields of the model', () => {
	const video = shown({ resource: 'video', operation: 'generate' });
	expect(video.slice(2, 8)).toEqual([
		...['model', 'prompt', 'promptPerLine', 'imageSource', 'imageUrl', 'durationSeconds'],
	]);
	expect(video[8]).toBe('modelFields');
});

it('the first view is short, whatever the options can do', () => {
	expect(shown({})).toEqual([
		...['resource', 'operation', 'model', 'prompt', 'promptPerLine', 'modelFields'],
		...['completion', 'downloadResults', 'includeInput', 'options'],
	]);
});

describe('the options', () => {
	const ofAll = ['If Some Items Fail'];
	const ofInput = ['Additional Fields', 'More Input (JSON)', 'Files', 'Send Files As'];
	const ofPrice = ['Dry Run', 'Max Cost (USD)', 'Reference'];
	const ofCreates = [...ofAll, ...ofInput, ...ofPrice];
	const ofWaits = ['Sleep After (Minutes)', 'Split Results', 'Timeout (Seconds)'];
	const ofOrders = ['Max Tasks at the Same Time', 'Retry Failed Tasks'];

	it.each<[string, string, completion: string | undefined, labels: string[]]>([
		['image', 'generate', 'wait', [...ofCreates, ...ofWaits, ...ofOrders]],
		['image', 'generate', 'trigger', [...ofCreates, 'Timeout (Seconds)']],
		['image', 'generate', 'return', ofCreates],
		['video', 'generate', 'return', ofCreates],
		['task', 'wait', undefined, [...ofAll, ...ofWaits]],
	])('are offered where they do something, each once (%s, %s, %s)', (...given) => {
		const [resource, operation, completion, labels] = given;
		const parameters = { resource, operation, ...(completion && { completion }) };
		expect(offered(parameters).sort()).toEqual(labels.sort());
	});

	it('begin with what guards money, since n8n shows about eight', () => {
		const all = offered({ resource: 'image', operation: 'generate', completion: 'wait' });
		expect(all.slice(0, 4)).toEqual([
			...['Dry Run', 'Max Cost (USD)', 'If Some Items Fail', 'Retry Failed Tasks'],
		]);
		expect(all.length).toBeLessThanOrEqual(15);
	});

	it.each(options)('$displayName says in two lines when to use it', ({ description: text }) => {
		expect(text).toMatch(/^.{40,120}$/);
	});

	it('have a line each in the reference, in the order of their labels', () => {
		const page = read('docs/reference.md');
		const [, list = ''] = page.split('**Options**, each shown only where it applies:');
		const [lines = ''] = list.trim().split('\n\n', 1);
		const labels = [...lines.matchAll(/^- \*\*(.+?)\*\*/gm)].map(([, label]) => label);
		expect(labels).toEqual([...new Set(options.map(({ displayName }) => displayName))]);
	});
});

describe('the hints before the first run', () => {
	const lines = (...all: string[]) => ({ prompt: all.join('\n'), model: 'acme/painter' });
	const long = 'A lighthouse on a cliff at dusk, '.repeat(4);

	/** What a node with these parameters says, by the beginning of its hint. */
	function hintsOf(parameters: IDataObject, count = 1): string[] {
		const items = Array.from({ length: count }, (_, row) => ({ json: { row } }));
		const context = executeContext({ node: { parameters }, items });
		return (description.hints ?? [])
			.filter(({ displayCondition = '' }) =>
				context.evaluateExpression(displayCondition.replace(/^=/, ''), 0),
			)
			.map(({ message }) => message.slice(0, 23));
	}

	const PLACEHOLDER = 'This model is a placeho';
	const IMAGE = 'imagevendor/image-model-2-text-to-image';
	const VIDEO = 'videovendor/video-model-2-mini';
	const OTHER = "The fields under 'Model";
	const fieldsOf = (model: string) => {
		const schema = [{ ...markOf(model), removed: true }];
		return { modelFields: { mappingMode: 'defineBelow', value: {}, schema } };
	};
	const SEVERAL = 'The prompt has several ';
	const URLS = 'The output holds the UR';
	const own = { model: { __rl: true, mode: 'id', value: 'acme/painter' } };
	const task = { resource: 'task', operation: 'create', ...own };
	const SECONDS = 'The price of this model';
	const ALONE = 'Leave this node connect';
	const dry = { dryRun: true };
	const recovery = { resource: 'task', operation: 'wait' };
	const cachedResultName = 'acme/clips (0.2 USD per second)';
	const clips = { model: { ...own.model, mode: 'list', cachedResultName } };

	it.each<[string, IDataObject, string[]]>([
		['say what to do with the placeholder', { model: IMAGE }, [PLACEHOLDER]],
		['say it for a video, too', { resource: 'video', model: VIDEO }, [PLACEHOLDER]],
		['say nothing of a model of the account', own, []],
		["say nothing where the credential's first model is used", {}, []],
		['say how to see the fields of the model', { ...own, ...fieldsOf('acme/other') }, [OTHER]],
		['say nothing of its own fields', { ...own, ...fieldsOf('acme/painter') }, []],
		['ask whether several lines are several pictures', lines('a bird', '', 'a cat'), [SEVERAL]],
		['ask it for a video, too', { resource: 'video', ...lines('a', 'b') }, [SEVERAL]],
		['do not ask where they are', { promptPerLine: true, ...lines('a', 'b') }, []],
		['do not ask for one line', lines('a bird', ''), []],
		['do not ask for paragraphs of one prompt', lines(long, 'oil painting'), []],
		['say how to see the results', { downloadResults: false, ...own }, [URLS]],
		['say it of a task, too', { downloadResults: false, ...task }, [URLS]],
		['warn of nodes that would order again', { ...recovery, taskId: 'execution 7' }, [ALONE]],
		['do not warn where ids are entered', { ...recovery, taskId: 'task-1' }, []],
		['say that a price by the second needs a duration', { resource: 'video', ...clips }, [SECONDS]],
		['do not of one with a duration', { resource: 'video', durationSeconds: 5, ...clips }, []],
		['do not where nothing is ordered', { downloadResults: false, options: dry, ...own }, []],
	])('%s', (_what, parameters, hints) => {
		expect(hintsOf(parameters)).toEqual(hints);
	});

	const SAME = 'Each incoming item make';
	const fixed = { prompt: 'A bird', ...own };

	it.each<[string, IDataObject, string[]]>([
		['say that all images would be alike', fixed, [SAME]],
		['say it of videos, too', { resource: 'video', imageUrl: 'https://a/1.png', ...fixed }, [SAME]],
		['do not where the prompt is of the item', { ...own, prompt: '={{ $json.row }}' }, []],
		['do not where another field is', { ...fixed, options: { additionalInput: '={{ {} }}' } }, []],
		['do not where each has a picture', { resource: 'video', imageSource: 'binary', ...fixed }, []],
		['do not where each has a file', { ...fixed, options: { files: {} } }, []],
		['do not where there is no prompt yet', own, []],
	])('%s, before many items are paid for', (_what, parameters, hints) => {
		expect(hintsOf(parameters, 3)).toEqual(hints);
		expect(hintsOf(parameters, 1)).toEqual([]);
	});
});

it('n8n itself requires no field: it would forget earlier results when it refuses to start', () => {
	const required = description.properties.filter((each) => each.required).map(({ name }) => name);
	expect([...new Set(required)]).toEqual(['toolDescription']);
});

describe('the trigger', () => {
	const { description } = new MediaGenerationTrigger();
	const notices = description.properties.filter(
		({ type, name }) => type === 'notice' && name !== 'notice',
	);

	it.each([
		[['SUCCESS'], [/^Failed tasks do not start this workflow\. .* add 'Task Failed'/]],
		[['FAILURE'], [/^Succeeded tasks do not start this workflow\. .* add 'Task Succeeded'/]],
		[['SUCCESS', 'FAILURE'], []],
		[['FAILURE', 'SUCCESS'], []],
		[[], []],
	])('with the events %j says what it leaves out: %j', (events, expected) => {
		const parameters = { events, options: {} };
		const node = { typeVersion: 1, parameters } as unknown as INode;
		const texts = notices
			.filter((each) => NodeHelpers.displayParameter(parameters, each, node, description))
			.map(({ displayName }) => displayName);
		expect(texts).toEqual(
			[/downloads nothing/, ...expected].map((text) => expect.stringMatching(text) as string),
		);
	});
});

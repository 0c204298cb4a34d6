import { type INode, NodeHelpers } from 'n8n-workflow';

import { MediaGenerationTrigger } from '../../../nodes/MediaGeneration/MediaGenerationTrigger.node';
import { TRIGGER } from '../../workflow/engine';

const { description } = new MediaGenerationTrigger();

/** The notices under *Events* that the panel shows. */
const shown = (events: string[]) => {
	const parameters = { events, options: {} };
	const node = { ...TRIGGER, typeVersion: 1, parameters } as INode;
	return description.properties
		.filter(({ type, name }) => type === 'notice' && name !== 'notice')
		.filter((each) => NodeHelpers.displayParameter(parameters, each, node, description))
		.map(({ displayName }) => displayName);
};

it.each([
	[['SUCCESS'], [/^Failed tasks do not start this workflow\. .* add 'Task Failed'/]],
	[['FAILURE'], [/^Succeeded tasks do not start this workflow\. .* add 'Task Succeeded'/]],
	[['SUCCESS', 'FAILURE'], []],
	[['FAILURE', 'SUCCESS'], []],
	[[], []],
])('with the events %j the trigger says what it leaves out: %j', (events, notices) => {
	expect(shown(events)).toEqual(notices.map((notice) => expect.stringMatching(notice) as string));
});

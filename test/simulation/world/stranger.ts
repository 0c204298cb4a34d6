import { TRIGGER_PATH } from '../../workflow/contexts';
import type { World } from './world';

/**
 * Makes up a callback: of somebody who has seen a callback address, but not all of its token; or of somebody who changes
 * the reference, and leaves the token as it is.
 */
export function forge(world: World): void {
	const { service, random, n8n } = world;
	const task = service.tasks.findLast(({ webhookUrl }) => webhookUrl !== undefined);
	if (!task) return;
	const url = new URL(task.webhookUrl ?? '');
	const { searchParams } = url;
	const changesReference =
		url.pathname === TRIGGER_PATH && random.between(0, 1, 'forged reference', task.id) === 1;
	if (changesReference) {
		world.note('forged reference');
		const isRemoved = random.between(0, 1, 'no reference', task.id) === 1;
		if (isRemoved && searchParams.has('reference')) searchParams.delete('reference');
		else searchParams.set('reference', 'of a stranger');
	} else {
		world.note('forged callback');
		const token = searchParams.get('token') ?? '';
		const length = random.between(0, token.length - 1, 'forged', task.id);
		searchParams.set('token', token.slice(0, length));
	}
	const what = changesReference ? 'another reference' : 'a wrong token';
	world.trace(`stranger: sends a callback of ${task.id} with ${what}`);
	n8n.webhooks.receive(url, { taskId: task.id, state: 'SUCCESS' }, (status) => {
		world.trace(`n8n: answers the stranger ${status}`);
		service.forged.push(status);
	});
}

import type { INode } from 'n8n-workflow';

import { inARow, node, webhook } from '../e2e/nodes';
import type { Stage } from '../e2e/stage';

/** A published workflow that calls start. */
export interface Entrance {
	/** That of its trigger. */
	name: string;
	workflowId: string;
	trigger: INode;
	/** The path of its address. */
	path: string;
	/** Its address at n8n's main process. */
	url: string;
}

const nothing = () => node('n8n-nodes-base.noOp', 'After', {});

/**
 * Publishes a workflow.
 *
 * @param path of the trigger's address
 * @param behind the nodes behind the trigger; one that does nothing where left out
 */
export async function openEntrance(
	{ client, n8n }: Stage,
	trigger: INode,
	path: string,
	behind: INode[] = [nothing()],
): Promise<Entrance> {
	const { name } = trigger;
	const { id } = await client.createWorkflow({ name, ...inARow(trigger, ...behind) });
	await client.publish(id, [path]);
	return { name, workflowId: id, trigger, path, url: n8n.url + path };
}

/** A workflow that starts with n8n's Webhook node. */
export async function openWebhook(stage: Stage, name: string, behind?: INode[]): Promise<Entrance> {
	const trigger = webhook(name);
	return await openEntrance(stage, trigger, `/webhook/${trigger.webhookId}`, behind);
}

/** A workflow that starts with our trigger. */
export async function openOurs(stage: Stage): Promise<Entrance> {
	const trigger = stage.mediaNode('mediaGenerationTrigger', 'Ours', {});
	return await openEntrance(stage, trigger, stage.client.webhookPath(trigger, 'callback'));
}

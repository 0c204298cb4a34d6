import type { FastifyInstance } from 'fastify';

import { parseSettings } from './settings';
import type { Switches } from './switches';

/** The switches over HTTP, for those who are not in the same process. No part of the specification. */
export function controlRoutes(app: FastifyInstance, switches: Switches): void {
	app.get('/control/settings', async () => switches.all);
	app.put('/control/settings', async (request) => {
		switches.configure(parseSettings(request.body));
		return switches.all;
	});
	app.delete('/control/settings', async () => {
		switches.reset();
		return switches.all;
	});
}

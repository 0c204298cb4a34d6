import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';

import { ServiceError } from './errors';

/** Reference images travel inside the input as data URIs. */
const BODY_LIMIT = 64 * 1024 * 1024;

/** A request, as a route sees it. */
export interface Asked {
	headers: IncomingHttpHeaders;
	/** The parts of the path that the route leaves open. */
	params: Record<string, string>;
	query: URLSearchParams;
	/** The parsed JSON of a POST. */
	body: unknown;
}

type Handle = (asked: Asked, response: ServerResponse) => Promise<void>;

/** The routes of a server. What a route throws becomes the answer. */
export class Routes {
	private readonly routes: Array<{ method: string; path: RegExp; handle: Handle }> = [];

	/** @param path `:name` leaves a part of it open */
	add(method: 'GET' | 'POST', path: string, handle: Handle): void {
		const pattern = path.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)');
		this.routes.push({ method, path: new RegExp(`^${pattern}$`), handle });
	}

	/** @throws what the route throws; ServiceError where there is none, or the body is no JSON */
	async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
		const { method, url = '', headers } = request;
		const [path = '', query] = url.split(/\?(.*)/s);
		for (const route of this.routes) {
			const found = method === route.method ? route.path.exec(path) : null;
			if (found === null) continue;
			const open = Object.entries(found.groups ?? {}).map(([name, part]) => [
				name,
				decodeURIComponent(part),
			]);
			const params = Object.fromEntries(open) as Asked['params'];
			const body = method === 'POST' ? await jsonOf(request) : undefined;
			await route.handle({ headers, params, query: new URLSearchParams(query), body }, response);
			return;
		}
		throw new ServiceError(404, 'not_found', `There is no ${method} ${path}.`);
	}
}

async function jsonOf(request: IncomingMessage): Promise<unknown> {
	if (Number(request.headers['content-length']) > BODY_LIMIT) {
		throw new ServiceError(413, 'too_large', 'The body is too large.');
	}
	const text = (await buffer(request)).toString();
	try {
		return JSON.parse(text);
	} catch {
		throw new ServiceError(400, 'no_json', 'The body is no JSON.');
	}
}

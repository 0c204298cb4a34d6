import { setTimeout as sleep } from 'node:timers/promises';

import { TEST_OWNER } from './types';

const REQUEST_TIMEOUT_MS = 60_000;

/** n8n looks every two seconds whether its database is there, and handles no request after it was not. */
const DATABASE_BACK_WITHIN_MS = 60_000;
const NO_DATABASE = 'Database is not ready!';

/** n8n refused a request, or answered it with an error. */
export class N8nApiError extends Error {
	constructor(
		method: string,
		path: string,
		readonly status: number,
		body: string,
	) {
		super(`n8n answered ${method} ${path} with ${status}: ${body.slice(0, 2_000)}`);
	}
}

/** Speaks to a running n8n over the internal REST interface, as its owner. */
export class Session {
	private cookie = '';

	/** @param url of the n8n, without a slash at the end */
	constructor(readonly url: string) {}

	/**
	 * Logs in as the owner, and makes the owner first on an instance that has none.
	 *
	 * @throws where the instance has an owner with another e-mail or password
	 */
	async setUp(owner = TEST_OWNER): Promise<void> {
		try {
			await this.login(owner);
		} catch (error) {
			if (!(error instanceof N8nApiError) || error.status !== 401) throw error;
			await this.send('POST', '/rest/owner/setup', owner);
			await this.login(owner);
		}
	}

	async login({ email, password } = TEST_OWNER): Promise<void> {
		await this.send('POST', '/rest/login', { emailOrLdapLoginId: email, password });
	}

	async get<T>(path: string): Promise<T> {
		return await this.send('GET', path);
	}

	/** A request whose answer n8n wraps in `data`. */
	async send<T = unknown>(method: string, path: string, body?: unknown): Promise<T> {
		return (await this.request<{ data: T }>(method, path, body)).data;
	}

	/** @returns the content of a file that a run has kept, in Base64 */
	async file(id: string): Promise<string> {
		const path = `/rest/binary-data?${new URLSearchParams({ id, action: 'view' }).toString()}`;
		const response = await this.fetch(path, { method: 'GET', headers: { cookie: this.cookie } });
		if (!response.ok) throw new N8nApiError('GET', path, response.status, await response.text());
		return Buffer.from(await response.arrayBuffer()).toString('base64');
	}

	protected async request<T>(method: string, path: string, body?: unknown): Promise<T> {
		const headers = {
			...(body !== undefined && { 'content-type': 'application/json' }),
			...(this.cookie && { cookie: this.cookie }),
		};
		const options = { method, headers, body: JSON.stringify(body) };
		const giveUp = Date.now() + DATABASE_BACK_WITHIN_MS;
		let response = await this.fetch(path, options);
		let text = await response.text();
		while (response.status === 503 && text.includes(NO_DATABASE) && Date.now() < giveUp) {
			await sleep(500);
			response = await this.fetch(path, options);
			text = await response.text();
		}
		if (!response.ok) throw new N8nApiError(method, path, response.status, text);
		for (const cookie of response.headers.getSetCookie()) {
			if (cookie.startsWith('n8n-auth=')) this.cookie = cookie.slice(0, cookie.indexOf(';'));
		}
		return (text === '' ? {} : JSON.parse(text)) as T;
	}

	protected async fetch(
		path: string,
		options: RequestInit & { headers: Record<string, string> },
	): Promise<Response> {
		try {
			const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
			// n8n may be closing an idle connection just when the next request goes out on it.
			const headers = { ...options.headers, connection: 'close' };
			return await fetch(this.url + path, { ...options, headers, signal });
		} catch (error) {
			const reason = error instanceof Error ? (error.cause ?? error) : error;
			throw new Error(`n8n did not answer ${options.method} ${path}: ${String(reason)}`, {
				cause: error,
			});
		}
	}
}

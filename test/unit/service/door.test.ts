import {
	checkModel,
	orderOf,
	taskIdIn,
	taskPath,
} from '../../../nodes/MediaGeneration/service/door';
import {
	type Service,
	SERVICES,
	SPECIFICATION,
} from '../../../nodes/MediaGeneration/service/services';

const row = (name: string, more: Partial<Service> = {}): Service => ({
	...SPECIFICATION,
	...SERVICES[name],
	...more,
});
const CALLBACK = 'https://n8n.test/webhook/1/callback?token=a&reference=b';

describe('an order', () => {
	const order = (name: string, model: string, input: object, callback?: string) =>
		orderOf(row(name), { model, input: { ...input }, callback });

	const x = { prompt: 'x' };
	const image_url = 'https://a.test/1.png';
	const frame0 = { type: 'image', url: image_url };
	const own = [{ type: 'text', text: 'own' }];
	const arkPath = '/contents/generations/tasks';

	it.each<[string, string, object, string, object]>([
		['', 'a/b', x, '/api/generate', { model: 'a/b', input: x }],
		[
			'deapi',
			'images/generations/F',
			{ ...x, model: 'o' },
			'/images/generations',
			{ model: 'F', ...x },
		],
		[
			'luma',
			'video/ray-2',
			{ ...x, image_url, duration: 5, loop: true },
			'/generations/video',
			{ model: 'ray-2', ...x, duration: '5s', loop: true, keyframes: { frame0 } },
		],
		['luma', 'image/photon-1', x, '/generations/image', { model: 'photon-1', ...x }],
		[
			'runway',
			'text_to_image/gen4_image',
			{ ...x, ratio: '1:1' },
			'/text_to_image',
			{ model: 'gen4_image', promptText: 'x', ratio: '1:1' },
		],
		[
			'ark',
			'seedance',
			{ ...x, duration: 5 },
			arkPath,
			{ model: 'seedance', content: [{ type: 'text', text: 'x' }], duration: 5 },
		],
		['ark', 'seedance', { content: own, ...x }, arkPath, { model: 'seedance', content: own }],
		['wavespeed', 'a/b/c', x, '/a/b/c', x],
	])('of %s with the model %s and %j', (name, model, input, path, body) => {
		expect(order(name, model, input)).toEqual({ path, body });
	});

	it('has the callback address as the row says: in the body, or whole in the query', () => {
		expect(order('kie', 'a', {}, CALLBACK).body).toMatchObject({ callBackUrl: CALLBACK });
		const { path } = order('wavespeed', 'a/b', {}, CALLBACK);
		expect(new URL(path, 'https://x.test').searchParams.get('webhook')).toBe(CALLBACK);
	});

	it('takes what a prompt says for no placeholder, and sends no key', () => {
		const prompt = '{key} {model} {input}';
		expect(order('runway', 'a/b', { prompt }).body).toMatchObject({ promptText: prompt });
	});
});

it.each(['../../x', '//evil.test', 'a//b', '/a', 'a/', '.', '..', ' a', ''])(
	'a model %j leads to no other path, as it is refused where it is a part of one',
	(model) => {
		for (const name of ['wavespeed', 'bfl', 'fal', 'segmind', 'runway', 'luma', 'deapi']) {
			expect(() => checkModel(row(name), model)).toThrow('cannot be a part of the address');
		}
		checkModel(row('kie'), model);
	},
);

it('a model without its kind is refused where the kind is the path', () => {
	const error = { kind: 'rejected', description: expect.stringContaining('a slash') as string };
	expect(() => checkModel(row('runway'), 'gen4_turbo')).toThrow(expect.objectContaining(error));
	checkModel(row('runway'), 'image_to_video/gen4_turbo');
});

describe('the id of a task', () => {
	it.each([
		['deapi', { data: { request_id: 'a' } }, 'a'],
		['deapi', { event: 'job.completed', id: 'evt', data: { job_request_id: 'a' } }, 'a'],
		['segmind', { request_id: 'a', status: 'QUEUED' }, 'a'],
		['wavespeed', { code: 200, data: { id: 'a', status: 'created' } }, 'a'],
		['kie', { code: 200, msg: 'success', data: { taskId: 'a' } }, 'a'],
		['bfl', { id: 'a', polling_url: 'https://api.us1.bfl.ai/v1/get_result?id=a' }, 'a'],
	])('of %s is found in %j', (name, body, id) => {
		expect(taskIdIn(body, row(name))).toBe(id);
	});

	it('begins with the model where a read needs the model, and leads back to the task', () => {
		const fal = row('fal');
		const id = taskIdIn({ request_id: 'r1', gateway_request_id: 'g' }, fal, 'fal-ai/flux/dev');
		expect(id).toBe('fal-ai/flux/dev/r1');
		expect(taskPath(fal, fal.read, String(id))).toBe('/fal-ai/flux/requests/r1/status');
		// As this package delivers a result again.
		expect(taskIdIn({ taskId: id }, fal)).toBe(id);
	});

	it.each(['r1', '../x/r1', 'a//r1', 'a/b/..'])(
		'%s has no model that a path can have, which is an error',
		(id) => {
			const fal = row('fal');
			expect(() => taskPath(fal, fal.read, id)).toThrow('does not begin with a model');
		},
	);

	it('is one part of the path, whatever it says', () => {
		const path = taskPath(row('replicate'), '/predictions/{taskId}', '../a?b#c/{key}');
		expect(path).toBe('/predictions/..%2Fa%3Fb%23c%2F%7Bkey%7D');
	});
});

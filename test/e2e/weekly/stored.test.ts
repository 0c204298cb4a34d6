import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';

import { type Listening, listen } from '../../listen';
import { outputItems } from '../../n8n/client';
import { LEAN } from '../../n8n/settings';
import { inARow, manualTrigger, node, prompts, to } from '../nodes';
import { succeeded } from '../run';
import { openScene } from '../scene';
import { Stage } from '../stage';

/** Where n8n keeps files and executions, and what other nodes make of our files. */

const SIZE = 30 * 1024 ** 2;
const BUCKET = 'a.bucket';

const digestOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

const xml = (text: string) => `<?xml version="1.0" encoding="UTF-8"?>${text}`;

/** As much of S3's interface as n8n's *AWS S3* node needs for an upload in parts, and a receiver of forms. */
async function openReceiver() {
	const received: Array<{ by: string; name: string; type: string; digest: string }> = [];
	let parts: Buffer[] = [];
	let type = '';
	const server: Listening = await listen((request, response) => {
		void (async () => {
			const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
			const body = await buffer(request);
			const answer = (text: string) =>
				response.setHeader('content-type', 'application/xml').end(xml(text));
			if (pathname === '/form') {
				const headers = { 'content-type': String(request.headers['content-type']) };
				const form = await new Response(body, { headers }).formData();
				const file = form.get('file') as File;
				const bytes = new Uint8Array(await file.arrayBuffer());
				received.push({ by: 'form', name: file.name, type: file.type, digest: digestOf(bytes) });
				response.setHeader('content-type', 'application/json').end('{}');
			} else if (searchParams.has('location')) {
				answer('<LocationConstraint xmlns="http://s3">us-east-1</LocationConstraint>');
			} else if (searchParams.has('uploads')) {
				parts = [];
				type = String(request.headers['content-type']);
				answer(
					'<InitiateMultipartUploadResult xmlns="http://s3"><UploadId>1</UploadId></InitiateMultipartUploadResult>',
				);
			} else if (searchParams.has('partNumber')) {
				parts[Number(searchParams.get('partNumber')) - 1] = body;
				response.setHeader('etag', '"1"').end();
			} else if (request.method === 'GET') {
				const list = parts.map(
					(_, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>1</ETag></Part>`,
				);
				answer(`<ListPartsResult xmlns="http://s3">${list.join('')}</ListPartsResult>`);
			} else {
				const name = pathname.split('/').at(-1) ?? '';
				received.push({ by: 's3', name, type, digest: digestOf(Buffer.concat(parts)) });
				answer(
					'<CompleteMultipartUploadResult xmlns="http://s3"><Key>1</Key></CompleteMultipartUploadResult>',
				);
			}
		})();
	});
	return { ...server, received };
}

describe.each(['filesystem', 'database'])('files in the %s', (mode) => {
	const scene = openScene({ env: { N8N_DEFAULT_BINARY_DATA_MODE: mode } });

	test('a file of 30 MB goes to AWS S3, and to a form, byte for byte', async () => {
		const receiver = await openReceiver();
		const aws = await scene.client.createCredential('AWS', 'aws', {
			region: 'us-east-1',
			accessKeyId: 'id',
			secretAccessKey: 'secret',
			customEndpoints: true,
			s3Endpoint: receiver.url,
		});
		const s3 = node(
			'n8n-nodes-base.awsS3',
			'S3',
			{
				operation: 'upload',
				bucketName: BUCKET,
				fileName: '={{ $binary.data.fileName }}',
				binaryPropertyName: 'data',
				additionalFields: {},
			},
			2,
		);
		const form = node(
			'n8n-nodes-base.httpRequest',
			'Form',
			{
				method: 'POST',
				url: `${receiver.url}/form`,
				sendBody: true,
				contentType: 'multipart-form-data',
				bodyParameters: {
					parameters: [
						{ parameterType: 'formBinaryData', name: 'file', inputDataFieldName: 'data' },
					],
				},
				options: {},
			},
			4.2,
		);
		const image = scene.image({ options: {}, downloadResults: true });
		const toBoth = inARow(
			manualTrigger(),
			...[prompts('A large one', [{ mediaBytes: SIZE, latencyMs: 0 }]), image],
			...[form],
		);
		toBoth.nodes.push({ ...s3, credentials: { aws } });
		toBoth.connections.Media = { main: to('Form', 'S3') };
		const run = await scene.startWorkflow({ name: 'Passed on', ...toBoth });
		const execution = succeeded(await run.end());
		const [item] = outputItems(execution, 'Media');
		const fileName = String(item?.binary?.data?.fileName);
		expect(fileName).toMatch(/^1-a-large-one-0-\w{4}\.png$/);
		const [link] = [item?.json.resultUrls].flat();
		const digest = digestOf(new Uint8Array(await (await fetch(String(link))).arrayBuffer()));
		const file = { name: fileName, type: 'image/png', digest };
		expect(receiver.received.sort((one, other) => one.by.localeCompare(other.by))).toEqual([
			{ by: 'form', ...file },
			{ by: 's3', ...file },
		]);
		await receiver.close();
	}, 300_000);
});

test('files in S3 need a licence: without one n8n does not start', async () => {
	const env = {
		...LEAN,
		N8N_DEFAULT_BINARY_DATA_MODE: 's3',
		N8N_EXTERNAL_STORAGE_S3_HOST: '127.0.0.1:9',
		N8N_EXTERNAL_STORAGE_S3_BUCKET_NAME: BUCKET,
	};
	await expect(Stage.open({ env })).rejects.toThrow(
		'S3 binary data storage requires a valid license',
	);
}, 300_000);

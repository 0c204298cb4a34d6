/** V8's format: rows of numbers, whose columns the head names, and the texts that some of them point to. */
interface Meta {
	node_fields: string[];
	node_types: [string[], ...unknown[]];
	edge_fields: string[];
	edge_types: [string[], ...unknown[]];
}

/** All that a process had in memory at one moment. */
export interface HeapSnapshot {
	/**
	 * What some code keeps in memory: its functions, the variables they close over, and all that is held by nothing
	 * else. What it has handed to others is theirs.
	 *
	 * @param isOwn tells the files of the code by their paths
	 * @returns bytes
	 */
	bytesKeptBy(isOwn: (path: string) => boolean): number;
}

/** @param file as `v8.writeHeapSnapshot` writes it; larger than the longest string that Node.js can hold */
export function readHeapSnapshot(file: Buffer): HeapSnapshot {
	const head = JSON.parse(`${textBetween(file, '{"snapshot":', ',\n"nodes":')}`) as {
		meta: Meta;
		node_count: number;
		edge_count: number;
	};
	const { meta, node_count: nodeCount, edge_count: edgeCount } = head;
	const nodeWidth = meta.node_fields.length;
	const edgeWidth = meta.edge_fields.length;
	const nodes = numbersAfter(file, '"nodes":[', nodeCount * nodeWidth);
	const edges = numbersAfter(file, '"edges":[', edgeCount * edgeWidth);
	const stringsAt = file.indexOf('"strings":') + '"strings":'.length;
	const strings = JSON.parse(file.toString('utf8', stringsAt, file.lastIndexOf('}'))) as string[];

	const nodeColumn = (name: string) => {
		const column = meta.node_fields.indexOf(name);
		return (node: number) => nodes[node * nodeWidth + column] ?? NaN;
	};
	const edgeColumn = (name: string) => {
		const column = meta.edge_fields.indexOf(name);
		return (edge: number) => edges[edge * edgeWidth + column] ?? NaN;
	};
	const typeOf = nodeColumn('type');
	const nameOf = nodeColumn('name');
	const sizeOf = nodeColumn('self_size');
	const edgeCountOf = nodeColumn('edge_count');
	const edgeTypeOf = edgeColumn('type');
	const edgeNameOf = edgeColumn('name_or_index');
	const offsetOf = edgeColumn('to_node');
	const targetOf = (edge: number) => offsetOf(edge) / nodeWidth;
	const WEAK = meta.edge_types[0].indexOf('weak');
	const INTERNAL = meta.edge_types[0].indexOf('internal');
	const [CODE, CLOSURE] = ['code', 'closure'].map((type) => meta.node_types[0].indexOf(type));

	// The edges of all nodes stand in the order of the nodes.
	const firstEdge = new Uint32Array(nodeCount + 1);
	for (let node = 0; node < nodeCount; node++) {
		firstEdge[node + 1] = (firstEdge[node] ?? 0) + edgeCountOf(node);
	}
	const edgesOf = function* (node: number) {
		for (let edge = firstEdge[node] ?? 0; edge < (firstEdge[node + 1] ?? 0); edge++) yield edge;
	};
	/** What an object of V8's own refers to by a name. */
	const internal = (node: number, name: string): number | undefined => {
		for (const edge of edgesOf(node)) {
			if (edgeTypeOf(edge) === INTERNAL && strings[edgeNameOf(edge)] === name)
				return targetOf(edge);
		}
		return undefined;
	};

	/** The functions of the code with their variables. */
	const codeOf = (isOwn: (path: string) => boolean): Set<number> => {
		const own = new Set<number>();
		const isOfOwnScript = (node: number) => {
			// The second name is Node.js 24's.
			const script = internal(node, 'script_or_debug_info') ?? internal(node, 'script');
			return script !== undefined && isOwn(strings[nameOf(script)] ?? '');
		};
		for (let node = 0; node < nodeCount; node++) {
			if (typeOf(node) === CODE && isOfOwnScript(node)) own.add(node);
		}
		for (let node = 0; node < nodeCount; node++) {
			if (typeOf(node) !== CLOSURE || !own.has(internal(node, 'shared') ?? -1)) continue;
			own.add(node);
			const context = internal(node, 'context');
			// A module's outermost function has that of all modules.
			if (context !== undefined && strings[nameOf(context)] === 'system / Context')
				own.add(context);
		}
		return own;
	};

	/** Bytes of all that is held from the roots, without what only some nodes hold. */
	const bytesHeld = (without: ReadonlySet<number>): number => {
		const seen = new Uint8Array(nodeCount);
		const open = [0];
		seen[0] = 1;
		let bytes = 0;
		for (let node = open.pop(); node !== undefined; node = open.pop()) {
			bytes += sizeOf(node);
			for (const edge of edgesOf(node)) {
				const target = targetOf(edge);
				if (edgeTypeOf(edge) === WEAK || seen[target] === 1 || without.has(target)) continue;
				seen[target] = 1;
				open.push(target);
			}
		}
		return bytes;
	};

	return { bytesKeptBy: (isOwn) => bytesHeld(new Set()) - bytesHeld(codeOf(isOwn)) };
}

function textBetween(file: Buffer, start: string, end: string): string {
	const from = file.indexOf(start) + start.length;
	return file.toString('utf8', from, file.indexOf(end, from));
}

/** @param start ends where the first of the numbers begins */
function numbersAfter(file: Buffer, start: string, count: number): Uint32Array {
	const numbers = new Uint32Array(count);
	let at = file.indexOf(start) + start.length;
	for (let index = 0; index < count; index++) {
		let value = 0;
		let digit = (file[at] ?? 0) - 48;
		while (digit < 0 || digit > 9) digit = (file[++at] ?? 0) - 48;
		for (; digit >= 0 && digit <= 9; digit = (file[++at] ?? 0) - 48) value = value * 10 + digit;
		numbers[index] = value;
	}
	return numbers;
}

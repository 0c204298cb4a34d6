export default async function closeLender(): Promise<void> {
	const { closeLender: close } = globalThis as { closeLender?: () => Promise<void> };
	await close?.();
}

/**
 * The entry of `npm start`. One process does it all, so that a signal to npm reaches the demo: a shell
 * between the two would keep it to itself.
 */
import '../setup.mjs';

await import('tsx');
await import('./main.ts');

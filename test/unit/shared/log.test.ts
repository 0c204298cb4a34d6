import { writeLog } from '../../../nodes/MediaGeneration/shared/itemError';
import { executeContext } from '../../workflow/engine';

it.each(['\n', '\r\n', '\u2028', '\u001b[2K', '\0'])(
	'%j in an id makes no line of its own',
	(sign) => {
		const context = executeContext();
		const info = jest.spyOn(context.logger, 'info').mockImplementation(() => {});
		writeLog(context, 'info', `created task a${sign}2026-01-01 error: forged (item 1)`);
		const [[line] = ['']] = info.mock.calls;
		info.mockRestore();
		expect(line).toMatch(
			/^[^\p{Cc}\u2028]+: created task a(?:%[0-9A-F]{2})+\S*2026-01-01 error: forged \(item 1\)$/u,
		);
	},
);

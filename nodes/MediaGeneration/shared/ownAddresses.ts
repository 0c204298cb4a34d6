/** The path of the trigger's webhook, as the node declares it: each callback address ends in it. */
export const CALLBACK_PATH = 'callback';

/** The query parameter of a callback address, and of a link to a file, that carries the secret. */
export const TOKEN_PARAMETER = 'token';

/** The end of the path at which n8n serves files with signed links (n8n 2.41). */
export const SIGNED_FILE_PATH = 'binary-data/signed';

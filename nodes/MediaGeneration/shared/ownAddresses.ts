/** The path of the trigger's webhook, as the node declares it: each callback address ends in it. */
export const CALLBACK_PATH = 'callback';

/** The query parameter of a callback address, and of a link to a file, that carries the secret. */
export const TOKEN_PARAMETER = 'token';

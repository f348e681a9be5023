/** The part of a pino logger that the project uses; fields never hold user text, audio or keys. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The same log with these fields in every line. */
export function logWith(log: Logger, fields: object): Logger {
  return {
    debug: (own, message) => log.debug({ ...fields, ...own }, message),
    info: (own, message) => log.info({ ...fields, ...own }, message),
    warn: (own, message) => log.warn({ ...fields, ...own }, message),
    error: (own, message) => log.error({ ...fields, ...own }, message),
  };
}

export const silentLog: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

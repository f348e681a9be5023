/** What the joiner of a reconnect storm is asked, and what it answers. */

/** Of its process. */
export interface JoinerOptions {
  /** File URL of the build that signs the tokens, with a slash at the end. */
  readonly distUrl: string;
  /** Of the key file's only key, base64url. */
  readonly secret: string;
  readonly keyId: string;
}

/** What the bare server is told, which is stormed the same way. */
export interface GreeterOptions {
  /** File URL of a build, for the length of its queue of connections. */
  readonly distUrl: string;
}

export interface StormArgs {
  readonly port: number;
  readonly joinsPerSecond: number;
  readonly seconds: number;
  /** Joins are spread over so many sessions. */
  readonly sessions: number;
  /** So many clients come in turn, each with one token: as many as there are joins, or fewer that come back. */
  readonly clients: number;
}

export interface StormResult {
  /** That got `hello`. */
  readonly joined: number;
  /** That were refused, cut off or not answered within ten seconds. */
  readonly failed: number;
  /** From when each join was due to its `hello`, ms. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** From the first join to the last hello. */
  readonly tookMs: number;
  /** CPU of the joiner in that time. */
  readonly joinerMs: number;
}

export interface JoinerCommands {
  storm(args: StormArgs): Promise<StormResult>;
}

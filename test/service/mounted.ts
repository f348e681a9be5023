/** Sections on a server and a store of their own, without a voice: for those that say nothing. */
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { OriginRules } from "../../src/access/origin-rules.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { FaultBoard } from "../../src/service/faults/board.ts";
import type { ServiceContext } from "../../src/service/http/context.ts";
import { createServer } from "../../src/service/http/server.ts";
import type { ServerLimits } from "../../src/service/http/server-limits.ts";
import { SingleUseTokens } from "../../src/service/http/single-use-tokens.ts";
import { ConcurrencyGate, type Tier } from "../../src/service/http/tiers.ts";
import type { TemporaryFiles } from "../../src/service/media/temporary-file.ts";
import { openStore, type Store } from "../../src/service/store/store.ts";
import { Webhooks } from "../../src/service/webhooks/webhooks.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { type TemporaryPartsOptions, temporaryParts } from "./temporary-parts.ts";

export interface Mounted extends AsyncDisposable {
  /** Where the sections are; below a prefix, so that the server may have them itself as well. */
  readonly url: string;
  readonly store: Store;
  readonly temporaryFiles: TemporaryFiles;
}

export async function mount(
  options: {
    readonly tier?: Tier;
    readonly key?: string;
    readonly limits?: ServerLimits;
  } & TemporaryPartsOptions,
  register: (section: FastifyInstance, context: ServiceContext) => void,
): Promise<Mounted> {
  const { tier = "enterprise", key } = options;
  const parts = temporaryParts(options);
  const store = await openStore({ folder: null });
  const open = (): never => {
    throw new Error("Nothing is to be said here");
  };
  const context: ServiceContext = {
    neuralVoices: new Map(),
    voices: { open },
    key,
    origins: new OriginRules({ host: "127.0.0.1" }),
    tokens: new SingleUseTokens(systemClock),
    tier,
    gate: new ConcurrencyGate(tier),
    faults: new FaultBoard(),
    store,
    ...parts,
    webhooks: new Webhooks(store.database, { log: watchedLog, allowPrivate: false }),
    log: watchedLog,
  };
  const app = createServer(context, watchedLog, options.limits);
  app.register(async (section) => register(section, context), { prefix: "/mounted" });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mounted`,
    store,
    temporaryFiles: parts.temporaryFiles,
    async [Symbol.asyncDispose]() {
      await app.close();
      await store.close();
    },
  };
}

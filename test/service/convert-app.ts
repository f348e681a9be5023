/** The service's app with the conversion sections on a free port, a voice behind it, and what the tests ask of it. */

import { OriginRules } from "../../src/access/origin-rules.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { conversionPoolOf } from "../../src/service/convert/conversion-pool.ts";
import { FaultBoard } from "../../src/service/faults/board.ts";
import { registerSpeechToSpeech } from "../../src/service/http/audio/speech-to-speech.ts";
import type { ServiceContext } from "../../src/service/http/context.ts";
import { createServer } from "../../src/service/http/server.ts";
import { SingleUseTokens } from "../../src/service/http/single-use-tokens.ts";
import { ConcurrencyGate, type Tier } from "../../src/service/http/tiers.ts";
import { registerVoiceSamples } from "../../src/service/http/voices/voice-samples.ts";
import { openStore } from "../../src/service/store/store.ts";
import { VoicePool } from "../../src/service/voice/pool.ts";
import { Webhooks } from "../../src/service/webhooks/webhooks.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { type TemporaryPartsOptions, temporaryParts } from "./temporary-parts.ts";

export async function startConvertApp(
  folder: string,
  options: { readonly tier?: Tier; readonly key?: string } & TemporaryPartsOptions = {},
) {
  const tier = options.tier ?? "enterprise";
  const voices = new VoicePool({ workers: 1, log: watchedLog, warmsUp: false });
  const store = await openStore({ folder });
  const webhooks = new Webhooks(store.database, { log: watchedLog, allowPrivate: false });
  const context: ServiceContext = {
    neuralVoices: new Map(),
    voices,
    webhooks,
    key: options.key,
    origins: new OriginRules({ host: "127.0.0.1" }),
    tokens: new SingleUseTokens(systemClock),
    tier,
    gate: new ConcurrencyGate(tier),
    faults: new FaultBoard(),
    store,
    ...temporaryParts(options),
    log: watchedLog,
  };
  const app = createServer(context, watchedLog);
  // The sections' routes come with the app's start, their pool at once.
  if (!app.hasDecorator("conversionPool")) {
    registerSpeechToSpeech(app, context);
    registerVoiceSamples(app, context);
  }
  await voices.start();
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  return {
    url,
    context,
    pool: conversionPoolOf(app, voices),
    close: async () => {
      await app.close();
      await voices.close();
      await webhooks.close();
      await store.close();
    },
  };
}

/**
 * `GET /voices`: every voice that may be named here. The vendor's own list at /v1/voices is passed on as it is: its clients read
 * more of a voice than is known of those of other services.
 */
import type { Caller } from "../access/caller.ts";
import type { Door } from "../access/door.ts";
import type { OfferedVoices } from "../protocol/voice-list.ts";
import { Reply } from "./http.ts";
import { requestAddress } from "./request-address.ts";
import { needs, type Routes } from "./routes.ts";
import { audited } from "./speech-access.ts";

export interface VoicesOptions {
  readonly door: Door;
  /** Does not reject. */
  readonly offered: () => Promise<OfferedVoices>;
}

const PATH = "/voices";

export function routeVoices(app: Routes, { door, offered }: VoicesOptions): void {
  app.getAndHead(PATH, needs("proxy"), (res, req, caller) => {
    const reply = new Reply(res);
    const address = requestAddress(res, req, door.proxyTrust);
    try {
      // As the vendor's list asks for: names of voices may be those of an account.
      audited({ door, caller, surface: PATH, address }, () => caller.mustPass("voices.read"));
    } catch (thrown) {
      reply.fail(thrown);
      return;
    }
    offered().then(
      (list) => reply.json(200, forCaller(list, caller)),
      (thrown: unknown) => reply.fail(thrown),
    );
  });
}

/** Those that its key or token allows. */
function forCaller({ voices, unlisted }: OfferedVoices, caller: Caller): OfferedVoices {
  return { voices: voices.filter(({ voice_id }) => caller.mayUseVoice(voice_id)), unlisted };
}

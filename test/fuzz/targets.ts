/** Every parser that meets bytes or text of strangers. A new one gets its target in the file of its folder. */
import type { Target } from "./target.ts";
import { ACCESS_TARGETS } from "./targets/access.ts";
import { AUDIO_TARGETS } from "./targets/audio.ts";
import { CARRIER_TARGETS } from "./targets/carriers.ts";
import { DECODER_TARGETS } from "./targets/decoders.ts";
import { PROTOCOL_TARGETS } from "./targets/protocol.ts";
import { REPLAY_TARGETS } from "./targets/replays.ts";
import { SERVICE_TARGETS } from "./targets/service.ts";
import { TEXT_TARGETS } from "./targets/text.ts";
import { UPSTREAM_TARGETS } from "./targets/upstream.ts";

export const TARGETS: Readonly<Record<string, Target>> = {
  ...PROTOCOL_TARGETS,
  ...CARRIER_TARGETS,
  ...AUDIO_TARGETS,
  ...DECODER_TARGETS,
  ...UPSTREAM_TARGETS,
  ...TEXT_TARGETS,
  ...ACCESS_TARGETS,
  ...SERVICE_TARGETS,
  ...REPLAY_TARGETS,
};

/** A speech service that answers at once with a tone: short for the crowd, of speech's length for the good neighbour. */
import { createServer } from "node:http";
import { serve } from "../../helpers/fake-answer.ts";
import { refusal, speaking } from "../../helpers/fake-upstream.ts";
import { type Listening, listening } from "../../helpers/listening.ts";

/** Who asks for this voice hears every text at the pace of speech. */
export const NEIGHBOUR_VOICE = "tone-a";
const NEIGHBOUR_MS_PER_CHAR = 40;

const slowly = speaking({ msPerChar: NEIGHBOUR_MS_PER_CHAR });
const quickly = speaking({ msPerChar: 1 });

export async function startQuickUpstream(): Promise<Listening> {
  const server = createServer((incoming, response) => {
    const answered = serve(incoming, response, async (request) => {
      const script = request.path.includes(`/${NEIGHBOUR_VOICE}/`) ? slowly : quickly;
      try {
        return await script(request, 0);
      } catch (thrown) {
        // A format that the tone is not made in, or a body that the gateway passed on as it came.
        return refusal(400, "invalid_parameters", { reason: String(thrown).slice(0, 200) });
      }
    });
    // An address that is none; and connections that the gateway has cut meanwhile.
    answered.catch(() => response.destroy());
  });
  return listening(server);
}

/** OBS as a service of captions: a local server that speaks the server's side of obs-websocket 5. */
import { describe, expect, it } from "vitest";
import { ObsTarget } from "../../../src/cli/captions/captions-obs.ts";
import { until } from "../../helpers/until.ts";
import { queueOf, shown } from "./captions-peers.ts";
import { OBS_PASSWORD, startObs } from "./obs-server.ts";

describe("OBS", () => {
  it("gets captions after its handshake with a password, over one connection, and again where that breaks", async () => {
    let breaks = 1;
    await using obs = await startObs((text) =>
      text === "Two." && breaks-- > 0 ? "close" : { result: true, code: 100 },
    );
    const { queue, reported } = queueOf(new ObsTarget(obs.url, OBS_PASSWORD));
    for (const text of ["One.", "Two.", "Three."])
      queue.push(shown([text, "more"].slice(0, text === "One." ? 2 : 1)));
    await until("all", () => queue.sent === 3);
    await queue.close();
    expect(obs.shownTexts).toEqual(["One.\nmore", "Two.", "Three."]);
    expect(obs.connections()).toBe(2);
    expect(reported).toEqual(["OBS closed (1006): trying again"]);
  });

  it("is reported once where it does not stream, or refuses the password", async () => {
    await using obs = await startObs(() => ({ result: false, code: 501 }));
    const idle = queueOf(new ObsTarget(obs.url, OBS_PASSWORD));
    idle.queue.push(shown(["One."]));
    idle.queue.push(shown(["Two."]));
    await until("a word", () => idle.reported.length > 0);
    await idle.queue.close();
    expect(idle.reported).toEqual(["OBS does not stream: a caption was dropped"]);
    const wrong = queueOf(new ObsTarget(obs.url, "a wrong one"));
    wrong.queue.push(shown(["One."]));
    await until("a word", () => wrong.reported.length > 0);
    await wrong.queue.close();
    expect(wrong.reported).toEqual(["OBS refused the password: a caption was dropped"]);
  });
});

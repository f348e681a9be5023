/**
 * OBS captions: the client of obs-websocket-js and ours before the same server. That OBS itself takes them is not shown
 * here; that we say what a client says that OBS is used with every day, is.
 */
import { describe, expect, it } from "vitest";
import { ObsTarget } from "../../src/cli/captions/captions-obs.ts";
import { until } from "../helpers/until.ts";
import { queueOf, shown } from "../unit/cli/captions-peers.ts";
import { OBS_PASSWORD, type ObsSaid, startObs } from "../unit/cli/obs-server.ts";
import { areInstalled, IF_INSTALLED, load } from "./installed.ts";

interface ObsClient {
  connect(
    url: string,
    password?: string,
    identify?: { readonly eventSubscriptions: number },
  ): Promise<{ readonly negotiatedRpcVersion: number }>;
  call(request: string, data?: object): Promise<unknown>;
  disconnect(): Promise<void>;
}
interface Package {
  readonly OBSWebSocket: new () => ObsClient;
}

const NO_EVENTS = { eventSubscriptions: 0 };
const accepted = { result: true, code: 100 };

/** Without what is each connection's or each client's own: the challenge's answer and the names of requests. */
const comparable = ({ op, d }: ObsSaid) => {
  const { requestId, authentication, ...rest } = d;
  return { op, ...rest, hasId: typeof requestId, hasPassword: typeof authentication };
};

describe.skipIf(!areInstalled("obs-websocket-js"))(`obs-websocket-js ${IF_INSTALLED}`, () => {
  const newClient = (): ObsClient => new (load<Package>("obs-websocket-js/json").OBSWebSocket)();

  it.each([
    ["with a password", OBS_PASSWORD],
    ["without one", ""],
  ])("it and we say the same, %s, and both are heard", async (_, password) => {
    await using obs = await startObs(() => accepted, { password });
    const client = newClient();
    try {
      const hello = await client.connect(obs.url.href, password === "" ? undefined : password, NO_EVENTS);
      expect(hello.negotiatedRpcVersion).toBe(1);
      await client.call("SendStreamCaption", { captionText: "One,\ntwo." });
      await client.call("SendStreamCaption", { captionText: "Ana: Three." });
    } finally {
      await client.disconnect();
    }
    const theirs = obs.said.map(comparable);

    const { queue, reported } = queueOf(new ObsTarget(obs.url, password));
    queue.push(shown(["One,", "two."]));
    queue.push(shown(["Three."], "Ana"));
    await until("both", () => queue.sent === 2);
    await queue.close();
    expect(reported).toEqual([]);
    expect(obs.said.slice(theirs.length).map(comparable)).toEqual(theirs);
    expect(obs.shownTexts).toEqual(["One,\ntwo.", "Ana: Three.", "One,\ntwo.", "Ana: Three."]);
  });

  it("it is refused by the server as we are: the password, a stream that does not run, what there is not", async () => {
    await using obs = await startObs(() => ({ result: false, code: 501 }));
    const stranger = newClient();
    await expect(stranger.connect(obs.url.href, "a wrong one", NO_EVENTS)).rejects.toMatchObject({
      code: 4009,
    });
    const client = newClient();
    try {
      await client.connect(obs.url.href, OBS_PASSWORD, NO_EVENTS);
      await expect(client.call("SendStreamCaption", { captionText: "One." })).rejects.toMatchObject({
        code: 501,
      });
      await expect(client.call("SendStreamCaption", {})).rejects.toMatchObject({ code: 300 });
      await expect(client.call("SendStreamSong", {})).rejects.toMatchObject({ code: 204 });
    } finally {
      await client.disconnect();
    }
    expect(obs.shownTexts).toEqual([]);
  });
});

/** OBS as a service of captions: a local server that speaks the server's side of obs-websocket 5. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { ObsTarget } from "../../../src/cli/captions-obs.ts";
import { until } from "../../helpers/until.ts";
import { queueOf, shown } from "./captions-peers.ts";

describe("OBS", () => {
  const PASSWORD = "open sesame";
  const hash = (text: string) => createHash("sha256").update(text).digest("base64");

  /** The server's side of obs-websocket 5. */
  async function startObs(statusOf: (text: string) => { result: boolean; code: number } | "close") {
    const server = new WebSocketServer({
      port: 0,
      host: "127.0.0.1",
      handleProtocols: () => "obswebsocket.json",
    });
    await once(server, "listening");
    const shownTexts: string[] = [];
    let connections = 0;
    server.on("connection", (socket) => {
      connections += 1;
      const authentication = { challenge: "chall=", salt: "sal=" };
      socket.send(
        JSON.stringify({ op: 0, d: { obsWebSocketVersion: "5.4.0", rpcVersion: 1, authentication } }),
      );
      socket.on("message", (data) => {
        const { op, d } = JSON.parse(String(data)) as { op: number; d: Record<string, unknown> };
        if (op === 1) {
          if (d.authentication === hash(`${hash(`${PASSWORD}sal=`)}chall=`))
            socket.send(JSON.stringify({ op: 2, d: { negotiatedRpcVersion: d.rpcVersion } }));
          else socket.close(4009, "Authentication failed.");
          return;
        }
        const { requestType, requestId, requestData } = d as {
          requestType: string;
          requestId: string;
          requestData: { captionText: string };
        };
        const status = requestType === "SendStreamCaption" ? statusOf(requestData.captionText) : "close";
        if (status === "close") {
          socket.terminate();
          return;
        }
        if (status.result) shownTexts.push(requestData.captionText);
        socket.send(JSON.stringify({ op: 7, d: { requestType, requestId, requestStatus: status } }));
      });
    });
    return {
      url: new URL(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`),
      shownTexts,
      connections: () => connections,
      async [Symbol.asyncDispose]() {
        for (const client of server.clients) client.terminate();
        server.close();
        await once(server, "close");
      },
    };
  }

  it("gets captions after its handshake with a password, over one connection, and again where that breaks", async () => {
    let breaks = 1;
    await using obs = await startObs((text) =>
      text === "Two." && breaks-- > 0 ? "close" : { result: true, code: 100 },
    );
    const { queue, told } = queueOf(new ObsTarget(obs.url, PASSWORD));
    for (const text of ["One.", "Two.", "Three."])
      queue.push(shown([text, "more"].slice(0, text === "One." ? 2 : 1)));
    await until("all", () => queue.sent === 3);
    await queue.close();
    expect(obs.shownTexts).toEqual(["One.\nmore", "Two.", "Three."]);
    expect(obs.connections()).toBe(2);
    expect(told).toEqual(["OBS closed (1006): trying again"]);
  });

  it("is told of once where it does not stream, or refuses the password", async () => {
    await using obs = await startObs(() => ({ result: false, code: 501 }));
    const idle = queueOf(new ObsTarget(obs.url, PASSWORD));
    idle.queue.push(shown(["One."]));
    idle.queue.push(shown(["Two."]));
    await until("a word", () => idle.told.length > 0);
    await idle.queue.close();
    expect(idle.told).toEqual(["OBS does not stream: a caption was dropped"]);
    const wrong = queueOf(new ObsTarget(obs.url, "a wrong one"));
    wrong.queue.push(shown(["One."]));
    await until("a word", () => wrong.told.length > 0);
    await wrong.queue.close();
    expect(wrong.told).toEqual(["OBS refused the password: a caption was dropped"]);
  });
});

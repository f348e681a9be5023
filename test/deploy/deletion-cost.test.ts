/** examples/deploy/kubernetes/deletion-cost.mjs against gateways and a scripted API server. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, it } from "vitest";
import { speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { freePort } from "../helpers/free-port.ts";
import { listening } from "../helpers/listening.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { pathOf } from "./deploy-files.ts";

const ANNOTATION = "controller.kubernetes.io/pod-deletion-cost";

interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly authorization: string | undefined;
  readonly contentType: string | undefined;
  readonly body: string;
}

/** Answers with these pods, and keeps what it was asked. */
async function startApi(pods: readonly object[]) {
  const seen: Seen[] = [];
  const answer = async (request: IncomingMessage): Promise<string> => {
    const { method, url, headers } = request;
    const { authorization, "content-type": contentType } = headers;
    seen.push({ method, url, authorization, contentType, body: await text(request) });
    return JSON.stringify(method === "GET" ? { items: pods } : {});
  };
  const server = createServer((request, response) => {
    void answer(request).then((body) => response.setHeader("content-type", "application/json").end(body));
  });
  return Object.assign(await listening(server), { seen });
}

async function run(env: Readonly<Record<string, string>>): Promise<{ code: number; said: string }> {
  const child = spawn(process.execPath, [pathOf("kubernetes/deletion-cost.mjs")], {
    stdio: ["ignore", "ignore", "pipe"],
    env,
  });
  const exit = once(child, "exit");
  const said = await text(child.stderr);
  const [code] = (await exit) as [number];
  return { code, said };
}

it("deletion cost: each gateway's sessions are written to its pod, where they are not yet", async () => {
  const opsPort = await freePort();
  await using upstream = await startFakeUpstream(speaking({ msPerChar: 40 }));
  await using gateway = await gatewayAt(upstream.url, { opsPort });
  await using client = await TestClient.connect(gateway, "/live/one");
  await client.next("hello");
  const pod = (name: string, podIP: string | undefined, more: object = {}) => ({
    metadata: { name, ...more },
    status: { podIP },
  });
  await using api = await startApi([
    pod("gateway-1", "127.0.0.1"),
    pod("gateway-2", "127.0.0.1", { annotations: { [ANNOTATION]: "1" } }),
    pod("gateway-3", "127.0.0.1", { deletionTimestamp: "2026-01-01T00:00:00Z" }),
    pod("gateway-4", undefined),
    // Nobody listens there.
    pod("gateway-5", "127.0.0.2"),
  ]);
  const folder = mkdtempSync(join(tmpdir(), "voicewire-token-"));
  const tokenFile = join(folder, "token");
  writeFileSync(tokenFile, "pod-token\n");
  try {
    const { code, said } = await run({
      KUBERNETES_API: api.url,
      TOKEN_FILE: tokenFile,
      NAMESPACE: "voicewire",
      OPS_PORT: String(opsPort),
    });
    expect(code).toBe(0);
    expect(said).toMatch(/^gateway-5: .+\n$/);
    const [list, ...patches] = api.seen;
    expect(list).toMatchObject({
      method: "GET",
      url:
        "/api/v1/namespaces/voicewire/pods?labelSelector=" +
        "app.kubernetes.io%2Fname%3Dvoicewire%2Capp.kubernetes.io%2Fcomponent%3Dgateway",
      authorization: "Bearer pod-token",
    });
    expect(patches).toEqual([
      {
        method: "PATCH",
        url: "/api/v1/namespaces/voicewire/pods/gateway-1",
        authorization: "Bearer pod-token",
        contentType: "application/merge-patch+json",
        body: JSON.stringify({ metadata: { annotations: { [ANNOTATION]: "1" } } }),
      },
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

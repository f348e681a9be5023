/** Mutated requests on every endpoint of real processes, a few on each; `npm run fuzz -- requests` sends 100,000. */
import { fileURLToPath } from "node:url";
import { describe, expect, it, vi } from "vitest";
import { startFuzzedGateway } from "./fuzzed-gateway.ts";
import { startQuickUpstream } from "./quick-upstream.ts";
import { answerFault } from "./request-crowd.ts";
import { serviceSeeds } from "./request-seeds.ts";
import { gatewaySeeds, runRequests, startFuzzedService } from "./watch-requests.ts";

vi.setConfig({ testTimeout: 120_000 });

const MAIN = fileURLToPath(new URL("../../../dist/main.js", import.meta.url));
const DOCUMENT = fileURLToPath(new URL("../../../docs/openapi.json", import.meta.url));
const INPUTS = 10;

describe("mutated requests", () => {
  it("every route of the gateway answers them as it says, and it stays up", async () => {
    await using upstream = await startQuickUpstream();
    await using gateway = await startFuzzedGateway({ main: MAIN, upstreamUrl: upstream.url });
    const seeds = await gatewaySeeds();
    expect(seeds.length).toBeGreaterThan(20);
    const report = await runRequests(gateway.process, { port: gateway.port, seeds, inputs: INPUTS, seed: 2 });
    expect(report.faults).toEqual([]);
    expect(report.sent).toBe(INPUTS * seeds.length);
  });

  it("every endpoint of the speech service answers them as it says, and it stays up", async () => {
    await using service = await startFuzzedService(MAIN);
    const seeds = serviceSeeds(DOCUMENT);
    expect(seeds.length).toBeGreaterThan(40);
    const port = Number(new URL(service.said).port);
    const report = await runRequests(service, { port, seeds, inputs: INPUTS, seed: 2 });
    expect(report.faults).toEqual([]);
    expect(report.sent).toBe(INPUTS * seeds.length);
  });
});

describe("an answer", () => {
  const answer = (status: number, body: string): string =>
    `HTTP/1.1 ${status} X\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

  it.each([
    [500, '{"error":{"code":"internal","retryable":true}}', "status 500"],
    [503, '{"detail":"busy"}', "status 503 without a code"],
    [400, '{"message":"no"}', "an error without its shape"],
    [400, '{"error":', "an error that is no JSON object"],
    [400, '{"error":{"code":"no_such","retryable":false}}', "unknown code no_such"],
  ])("of status %i with %s is a fault", (status, body, fault) => {
    expect(answerFault(status, answer(status, body))).toBe(fault);
  });

  it("with a known code is none", () => {
    expect(answerFault(400, answer(400, '{"error":{"code":"invalid_field","retryable":false}}'))).toBeNull();
  });
});

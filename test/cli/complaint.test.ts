/** A caller complains of a gap and of a sentence that was cut: the recording alone says why, as docs/operate.md promises. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { isTimed, speaking, speechAnswer, speechFor, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { TestClient } from "../helpers/start-gateway.ts";
import { PATIENT, run, serve, temporaryFolder } from "./program.ts";

vi.setConfig(PATIENT);
/** The upstream is silent for so long in the middle of its answer. */
const SILENT_MS = 3000;

interface Shown {
  readonly replay: { readonly difference: unknown };
  readonly dry: readonly {
    readonly atMs: number;
    readonly utterance: string;
    readonly silence: { readonly fromMs: number; readonly untilMs: number } | null;
  }[];
  readonly utterances: readonly { readonly id: string; readonly interrupts: number }[];
  readonly happenings: readonly { readonly what: string; readonly who: string; readonly utterance: string }[];
}

test("a gap is told with the upstream's silence behind it, a cut with who asked for it", async () => {
  using folder = temporaryFolder();
  const recordings = folder.file("recordings");
  await using upstream = await startFakeUpstream((request, index) => {
    if (!request.text.includes("books")) return speaking()(request, index);
    const answer = speechAnswer(speechFor(request), { isTimed: isTimed(request) });
    const body = [...(answer.body ?? [])];
    body.splice(body.length >> 1, 0, { afterMs: SILENT_MS });
    return { ...answer, body };
  });
  const served = await serve([
    ...["--upstream-url", upstream.url, "--voice", "tone-a", "--record", recordings],
  ]);
  await using program = served.program;
  const caller = await TestClient.connect(
    { wsUrl: served.url.replace("http", "ws") },
    "/live/call-17?format=ulaw_8000&events=words",
  );
  caller.send({ type: "speak", text: "All nine books have been sent to you.", utterance_id: "books" });
  await caller.next("utterance.done");
  caller.send({ type: "speak", text: "They will be with you on Monday morning.", utterance_id: "day" });
  await caller.next("utterance.started", 2);
  caller.send({ type: "interrupt" });
  await caller.next("interrupted");
  program.child.kill("SIGTERM");
  await program.ended;

  const [name = ""] = readdirSync(recordings).filter((file) => file.includes("call-17"));
  const file = join(recordings, name);
  const json = await run(["replay", file, "--json"]);
  const shown = JSON.parse(json.stdout.toString()) as Shown;
  expect(json.code).toBe(0);
  expect(shown.replay.difference).toBeNull();
  expect(shown.dry.length).toBeGreaterThan(0);
  for (const { atMs, utterance, silence } of shown.dry) {
    expect(utterance).toBe("books");
    const { fromMs, untilMs } = silence ?? { fromMs: 0, untilMs: 0 };
    expect(untilMs - fromMs).toBeGreaterThan(SILENT_MS * 0.9);
    expect(atMs).toBeGreaterThanOrEqual(fromMs);
    expect(atMs).toBeLessThanOrEqual(untilMs);
  }
  expect(shown.utterances.map(({ id, interrupts }) => [id, interrupts])).toEqual([
    ["books", 0],
    ["day", 1],
  ]);
  const order = shown.happenings.map(({ what }) => what);
  expect(order.indexOf("interrupted")).toBe(order.indexOf("interrupt") + 1);

  const text = (await run(["replay", file])).stdout.toString();
  expect(text).toMatch(/books ran dry at \d\.\d+ s: request 1 brought nothing from \d\.\d+ s to \d\.\d+ s\./);
  expect(text).not.toContain("day ran dry");
});

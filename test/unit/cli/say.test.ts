/** `voicewire say` against a gateway that pauses, is interrupted and reports its latency on demand. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { runCli } from "../../../src/cli/commands.ts";
import { type Command, parseCommand } from "../../../src/protocol/commands.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { until } from "../../helpers/until.ts";
import { memoryIo } from "./memory-io.ts";
import { cueEvent } from "./scripted-cues.ts";
import { type Joined, ScriptedGateway } from "./scripted-gateway.ts";

const folder = mkdtempSync(join(tmpdir(), "voicewire-say-"));
afterAll(() => rmSync(folder, { recursive: true }));

function done(
  joined: Joined,
  utteranceId: string | undefined,
  outcome = "done",
  latency: object | null = null,
) {
  joined.event({
    type: "utterance.done",
    utterance_id: utteranceId,
    outcome,
    end_ms: 0,
    latency,
    segments: [],
  });
}

/** Accepts everything, and has said it at the end of its text. */
function agreeable(command: Command, joined: Joined): void {
  if (command.type === "speak") {
    joined.send({ type: "utterance.queued", utterance_id: command.utterance_id, ahead: 0 });
    done(joined, command.utterance_id);
  }
  if (command.type === "end") done(joined, command.utterance_id);
}

const texts = (gateway: ScriptedGateway) =>
  gateway.commands.flatMap((command) => (command.type === "text" ? [command] : []));

describe("voicewire say --tokens", () => {
  const file = join(folder, "stream.ndjson");
  writeFileSync(
    file,
    ['{"about": "x", "language": "hi"}', '{"at_ms": 0, "text": "नम"}', '{"at_ms": 5, "text": "स्ते"}'].join(
      "\n",
    ),
  );

  test("sends each token of the recording unchanged, with the options on the first, then its end", async () => {
    await using gateway = await ScriptedGateway.start({
      onJoin: (joined) => joined.hello(),
      onCommand: agreeable,
    });
    const flags = ["--clean", "markdown,urls", "--replace", "SQL=sequel", "--priority", "7"];
    const io = memoryIo(["say", "--url", gateway.url, "--tokens", file, ...flags]);
    expect(await runCli(io)).toBe(0);
    const [first, second] = texts(gateway);
    expect(first).toMatchObject({
      text: "नम",
      language_code: "hi",
      clean: ["markdown", "urls"],
      replacements: [{ from: "SQL", to: "sequel" }],
      priority: 7,
    });
    expect(second).toEqual({ type: "text", text: "स्ते", utterance_id: first?.utterance_id });
    expect(gateway.commands.filter((command) => command.type === "end")).toHaveLength(1);
  });

  test("reads it from stdin, and --language goes before the recording's", async () => {
    await using gateway = await ScriptedGateway.start({
      onJoin: (joined) => joined.hello(),
      onCommand: agreeable,
    });
    const stdin = ['{"language": "hi"}\n{"at_ms": 0, "te', 'xt": "a"}\n'];
    const io = memoryIo(["say", "--url", gateway.url, "--tokens", "-", "--language", "ne"], { stdin });
    expect(await runCli(io)).toBe(0);
    expect(texts(gateway)).toMatchObject([{ text: "a", language_code: "ne" }]);
  });

  test("says which line of the file is wrong before it asks a gateway", async () => {
    const wrong = join(folder, "wrong.ndjson");
    writeFileSync(wrong, '{"at_ms": 0, "text": "a"}\n{"at_ms": "soon", "text": "b"}\n');
    const io = memoryIo(["say", "--url", "http://127.0.0.1:1", "--tokens", wrong]);
    expect(await runCli(io)).toBe(2);
    expect(io.stderr.text).toContain("line 2: at_ms is no time");
  });
});

test("a whole text is sent with its options", async () => {
  await using gateway = await ScriptedGateway.start({
    onJoin: (joined) => joined.hello(),
    onCommand: agreeable,
  });
  const io = memoryIo(["say", "--url", gateway.url, "--clean", "emoji", "--priority", "-3", "Hello"]);
  expect(await runCli(io)).toBe(0);
  expect(gateway.commands[0]).toMatchObject({ type: "speak", text: "Hello", clean: ["emoji"], priority: -3 });
});

test("reads no more of stdin while the gateway has paused the text", async () => {
  let read = 0;
  async function* stdin() {
    for (const token of ["one ", "two ", "three ", "four "]) {
      read += 1;
      yield Buffer.from(token);
    }
  }
  await using gateway = await ScriptedGateway.start({
    onJoin: (joined) => joined.hello({ limits: { credit_chars: 4 } }),
    onCommand: (command, joined) => {
      if (command.type === "text" && command.text === "two ") {
        joined.send({ type: "paused", utterance_id: command.utterance_id, pending_chars: 8, limit_chars: 4 });
      } else agreeable(command, joined);
    },
  });
  const io = memoryIo(["say", "--url", gateway.url], { stdin: stdin() });
  const ended = runCli(io);
  await until("the pause", () => texts(gateway).length === 2);
  // Everything that is under way has a chance to arrive.
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(texts(gateway)).toHaveLength(2);
  expect(read).toBe(3);
  const [joined] = gateway.joined;
  joined?.send({
    type: "resumed",
    utterance_id: texts(gateway)[0]?.utterance_id,
    pending_chars: 0,
    limit_chars: 4,
  });
  expect(await ended).toBe(0);
  expect(
    texts(gateway)
      .map(({ text }) => text)
      .join(""),
  ).toBe("one two three four ");
});

test("a file on stdin that is there at once still heeds a pause: no more than the credit is sent unheard", async () => {
  const text = "word ".repeat(100);
  await using gateway = await ScriptedGateway.start({
    onJoin: (joined) => joined.hello({ limits: { credit_chars: 50 } }),
    onCommand: (command, joined) => {
      if (command.type === "text" && texts(gateway).length === 1)
        joined.send({
          type: "paused",
          utterance_id: command.utterance_id,
          pending_chars: 50,
          limit_chars: 50,
        });
      else agreeable(command, joined);
    },
  });
  const io = memoryIo(["say", "--url", gateway.url], { stdin: [text] });
  const ended = runCli(io);
  await until("the first piece", () => gateway.commands.some((command) => command.type === "ping"));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(
    texts(gateway)
      .map((command) => command.text)
      .join("").length,
  ).toBeLessThanOrEqual(50);
  const [joined] = gateway.joined;
  joined?.send({
    type: "resumed",
    utterance_id: texts(gateway)[0]?.utterance_id,
    pending_chars: 0,
    limit_chars: 50,
  });
  expect(await ended).toBe(0);
  expect(
    texts(gateway)
      .map((command) => command.text)
      .join("")
      .trim(),
  ).toBe(text.trim());
});

/** Each text is queued, and then `report` sends its events. */
function speakingGateway(report: (joined: Joined, utteranceId: string | undefined) => void) {
  return ScriptedGateway.start({
    onJoin: (joined) => joined.hello(),
    onCommand: (command, joined) => {
      if (command.type !== "speak") return;
      joined.send({ type: "utterance.queued", utterance_id: command.utterance_id, ahead: 0 });
      report(joined, command.utterance_id);
    },
  });
}

/** `voicewire say --srt -` of a text whose events `report` sends. */
async function captionsOf(
  text: string,
  report: (joined: Joined, utteranceId: string | undefined) => void,
  ...flags: string[]
): Promise<{ srt: string; gateway: ScriptedGateway }> {
  await using gateway = await speakingGateway(report);
  const out = join(folder, "captions.pcm");
  const io = memoryIo(["say", "--url", gateway.url, "--srt", "-", "--out", out, ...flags, text]);
  expect(await runCli(io)).toBe(0);
  return { srt: io.stdout.text, gateway };
}

test("--srt has what viewers of the gateway's captions see, also of others in the session", async () => {
  const { srt, gateway } = await captionsOf(
    "This is **bold**.",
    (joined, utteranceId) => {
      joined.event({ ...cueEvent("Somebody else.", { startMs: 0, endMs: 900, utteranceId: "other" }) });
      joined.event({
        ...cueEvent("This is bold.", { startMs: 1000, endMs: 2000, utteranceId: `${utteranceId}` }),
      });
      done(joined, utteranceId);
    },
    "--clean",
    "markdown",
  );
  expect(gateway.joined[0]?.query.get("events")).toBe("words,cues");
  expect(srt).toBe(
    "1\n00:00:00,000 --> 00:00:00,900\nSomebody else.\n\n2\n00:00:01,000 --> 00:00:02,000\nThis is bold.\n\n",
  );
});

describe("files of speech that fails", () => {
  const failing = (frames: number) =>
    ScriptedGateway.start({
      onJoin: (joined) => joined.hello(),
      onCommand: (command, joined) => {
        if (command.type !== "speak") return;
        joined.send({ type: "utterance.queued", utterance_id: command.utterance_id, ahead: 0 });
        joined.frames(Array<number>(frames).fill(7));
        const error = { code: "upstream_failed", message: "It failed", retryable: true };
        joined.event({ type: "error", utterance_id: command.utterance_id, ...error });
      },
    });
  const files = ["wav", "vtt", "srt"].map((end) => join(folder, `failed.${end}`));
  const flags = () => ["--out", "--vtt", "--srt"].flatMap((flag, index) => [flag, files[index] ?? ""]);

  test("there are none where nothing was heard", async () => {
    await using gateway = await failing(0);
    const io = memoryIo(["say", "--url", gateway.url, ...flags(), "Hello"]);
    expect(await runCli(io)).toBe(4);
    expect(files.filter((file) => existsSync(file))).toEqual([]);
    expect(io.stderr.text).not.toContain("Wrote");
  });

  test("they have what was heard, and it is said how much", async () => {
    await using gateway = await failing(5);
    const io = memoryIo(["say", "--url", gateway.url, ...flags(), "Hello"]);
    expect(await runCli(io)).toBe(4);
    expect(files.filter((file) => existsSync(file))).toEqual(files);
    expect(io.stderr.text).toMatch(/Wrote .*failed\.wav: 0\.1 s of pcm_24000/);
    expect(io.stderr.text).toContain("It failed");
  });
});

test("--srt has nothing of what somebody else has cut before it was heard, and fits the file behind it", async () => {
  const { srt } = await captionsOf("Hello there.", (joined, utterance_id) => {
    const utteranceId = `${utterance_id}`;
    joined.event({ ...cueEvent("Hello there.", { startMs: 0, wordMs: 1000, utteranceId }) });
    joined.frames([1, 1, 1, 1, 1]);
    joined.event({
      type: "interrupted",
      utterance_id,
      at_ms: 80,
      heard: { text: "Hello", end: 5, ms: 80, source: "estimate", bound_ms: 40 },
      unheard_text: " there.",
      resumable: true,
      next_ms: 600,
    });
    joined.event({ type: "utterance.resumed", utterance_id, start: 6, start_ms: 600, timing: "exact" });
    joined.event({ ...cueEvent("there.", { startMs: 620, start: 6, utteranceId }) });
    joined.frames([2, 2]);
    done(joined, utterance_id);
  });
  // Behind the 100 ms that had come stands what follows at 600 ms.
  expect(srt).toBe("1\n00:00:00,000 --> 00:00:00,080\nHello\n\n2\n00:00:00,120 --> 00:00:00,220\nthere.\n\n");
});

describe("voicewire say --dialogue", () => {
  const LONG = "😀".repeat(70);

  test.each([
    ["goes out as the file has it", "Anna", "Anna"],
    ["is cut to the length that the protocol takes", LONG, "😀".repeat(64)],
    ["is made one line", "Anna\u0007\u2028of\nthe two", "Anna of the two"],
    ["of nothing to be shown is left out", "\u0007", undefined],
  ])("a voice's name as its speaker %s", async (_, name, speaker) => {
    const file = join(folder, "dialogue.json");
    writeFileSync(file, JSON.stringify([{ voice: name, text: "Hello." }]));
    await using gateway = await ScriptedGateway.start({
      voices: [{ voice_id: "v1", name }],
      onJoin: (joined) => joined.hello(),
      onCommand: (command, joined) => {
        if (command.type !== "dialogue") return;
        joined.send({ type: "utterance.queued", utterance_id: command.utterance_id, ahead: 0 });
        done(joined, command.utterance_id);
      },
    });
    expect(await runCli(memoryIo(["say", "--url", gateway.url, "--dialogue", file]))).toBe(0);
    // As a gateway takes it in.
    const [sent] = gateway.commands.map((command) => parseCommand(JSON.stringify(command)).command);
    const named = speaker === undefined ? {} : { speaker };
    expect(sent).toHaveProperty("inputs.0", { text: "Hello.", voice_id: "v1", ...named });
  });
});

test("Ctrl+C interrupts once, prints the receipt and exits with 130", async () => {
  await using gateway = await ScriptedGateway.start({
    onJoin: (joined) => joined.hello(),
    onCommand: (command, joined) => {
      if (command.type !== "interrupt") return;
      const [spoken] = gateway.commands;
      const utteranceId = spoken?.type === "speak" ? spoken.utterance_id : undefined;
      joined.event({
        type: "interrupted",
        utterance_id: utteranceId,
        heard: { text: "Hello", end: 5, ms: 480, source: "estimate", bound_ms: 40 },
        unheard_text: " there",
        resumable: true,
        next_ms: 500,
      });
      done(joined, utteranceId, "interrupted");
    },
  });
  const io = memoryIo(["say", "--url", gateway.url, "--json", "Hello there"]);
  const ended = runCli(io);
  await until("the command", () => gateway.commands.length > 0);
  io.signal("SIGINT");
  io.signal("SIGINT");
  expect(await ended).toBe(130);
  expect(io.stderr.text).toBe(
    'Interrupted after 480 ms (by estimate, within 40 ms)\nHeard: "Hello"\nNot heard: "there"\n',
  );
  expect(io.stdout.text).toContain('"type":"interrupted"');
  expect(gateway.commands.filter((command) => command.type === "interrupt")).toHaveLength(1);
  expect(io.signalListeners).toBe(0);
});

describe("voicewire say --waterfall", () => {
  const LATENCY = {
    text_ms: 1,
    queued_ms: 2,
    connected_ms: 3,
    headers_ms: 4,
    first_byte_ms: 5,
    first_sound_ms: 6,
    first_frame_ms: 7,
    total_ms: 28,
    leading_silence_ms: null,
  };
  const LINE =
    "text 1 + queued 2 + connected 3 + headers 4 + first byte 5 + first sound 6 + first frame 7 = total 28 ms\n";
  const interrupted = (utterance_id: string | undefined, resumable: boolean) => ({
    type: "interrupted",
    utterance_id,
    at_ms: 0,
    heard: { text: "Hello", end: 5, ms: 480, source: "estimate", bound_ms: 40 },
    unheard_text: "",
    resumable,
    next_ms: 500,
  });

  test("prints where the time went, a line an utterance, when all is said", async () => {
    await using gateway = await speakingGateway((joined, id) => done(joined, id, "done", LATENCY));
    const io = memoryIo(["say", "--url", gateway.url, "--waterfall", "--quiet", "Hello"]);
    expect(await runCli(io)).toBe(0);
    expect(io.stderr.text).toBe(LINE);
  });

  const RECEIPT = 'Interrupted after 480 ms (by estimate, within 40 ms)\nHeard: "Hello"\n';

  test("prints it of what somebody else has cut, also where nobody goes on with it, and exits with 0", async () => {
    await using gateway = await speakingGateway((joined, utterance_id) => {
      joined.event({ type: "utterance.started", utterance_id });
      joined.event(interrupted(utterance_id, true));
      done(joined, utterance_id, "interrupted", LATENCY);
    });
    const clock = new FakeClock();
    const io = memoryIo(["say", "--url", gateway.url, "--waterfall", "Hello"], { clock });
    const ended = runCli(io);
    await until("the cut", () => io.stderr.text === RECEIPT);
    const turning = setInterval(() => clock.advance(100), 1);
    expect(await ended).toBe(0);
    clearInterval(turning);
    expect(io.stderr.text).toBe(RECEIPT + LINE);
  });

  test("prints it once of what was cut and went on", async () => {
    await using gateway = await speakingGateway((joined, utterance_id) => {
      joined.event({ type: "utterance.started", utterance_id });
      joined.event(interrupted(utterance_id, true));
      done(joined, utterance_id, "interrupted", LATENCY);
      joined.event({ type: "utterance.resumed", utterance_id });
      done(joined, utterance_id, "done", LATENCY);
    });
    const io = memoryIo(["say", "--url", gateway.url, "--waterfall", "Hello"]);
    expect(await runCli(io)).toBe(0);
    expect(io.stderr.text).toBe(RECEIPT + LINE);
  });

  test("prints it of what Ctrl+C has stopped, though that ends a little later", async () => {
    let spoken: string | undefined;
    await using gateway = await ScriptedGateway.start({
      onJoin: (joined) => joined.hello(),
      onCommand: (command, joined) => {
        if (command.type === "speak") {
          spoken = command.utterance_id;
          joined.event({ type: "utterance.started", utterance_id: spoken });
          joined.send({ type: "pong", id: "begun" });
        }
        if (command.type !== "interrupt") return;
        joined.event(interrupted(spoken, false));
        setTimeout(() => done(joined, spoken, "interrupted", LATENCY), 20);
      },
    });
    const io = memoryIo(["say", "--url", gateway.url, "--waterfall", "--quiet", "--json", "Hello"]);
    const ended = runCli(io);
    await until("the speech", () => io.stdout.text.includes('"begun"'));
    io.signal("SIGINT");
    expect(await ended).toBe(130);
    expect(io.stderr.text).toBe(LINE);
  });

  test("prints it of what failed on its way, with the reason", async () => {
    await using gateway = await speakingGateway((joined, utterance_id) => {
      const error = { code: "upstream_failed", message: "It broke", retryable: true };
      joined.event({ type: "utterance.started", utterance_id });
      joined.event({ type: "error", utterance_id, ...error });
      const over = { outcome: "failed", end_ms: 0, latency: LATENCY, segments: [], error };
      setTimeout(() => joined.event({ type: "utterance.done", utterance_id, ...over }), 20);
    });
    const io = memoryIo(["say", "--url", gateway.url, "--waterfall", "Hello"]);
    expect(await runCli(io)).toBe(4);
    expect(io.stderr.text).toContain(LINE);
  });
});

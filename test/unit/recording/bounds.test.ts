/** What recordings may take: of the disk, of memory, of what clients did not want kept. Speech goes on whatever happens to them. */
import { describe, expect, it } from "vitest";
import type { Logger } from "../../../src/kit/log.ts";
import { endSentence } from "../../../src/recording/format.ts";
import { replay } from "../../../src/recording/player.ts";
import { readLines } from "../../helpers/recordings.ts";
import { countingUlaw, evenAlignment } from "../../helpers/session-rig.ts";
import { watchedLog } from "../../helpers/watched-log.ts";
import { createRecordedRig } from "./recording-rig.ts";

type Rig = ReturnType<typeof createRecordedRig>;

/** Speaks a second in a session, and says how many frames its listener got. */
async function speak(rig: Rig, session = "s", more: object = {}): Promise<number> {
  const { listener, send } = rig.join("format=ulaw_8000&events=words", session);
  send({ type: "speak", text: "Xylophone canary.", ...more });
  await settled();
  const request = rig.requests.at(-1);
  request?.head();
  request?.chunk(countingUlaw(1000), { alignment: evenAlignment("Xylophone canary.", 50) });
  request?.handlers.end();
  for (let ms = 0; ms < 1500; ms += 100) {
    rig.clock.advance(100);
    await settled();
  }
  return listener.frames.length;
}

async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

function notedLog(): { readonly log: Logger; readonly lines: unknown[] } {
  const lines: unknown[] = [];
  const log: Logger = { ...watchedLog, error: (facts: unknown) => void lines.push(facts) };
  return { log, lines };
}

const FRAMES = 50;

describe("a recording", () => {
  it("ends at its bound with a line that says so, and speech goes on", async () => {
    const rig = createRecordedRig({}, { maxSessionMb: 0.01 });
    expect(await speak(rig)).toBe(FRAMES);
    await rig.recordings.close();
    const recording = readLines(rig.disk.lines());
    expect(recording.end).toBe("session_full");
    expect(replay(recording).difference).toBeNull();
    expect(rig.recordings.figures.open).toBe(0);
    expect(rig.recordings.figures.ended.get("session_full")).toBe(1);
  });

  it("ends where the folder is full, and no other one begins", async () => {
    const rig = createRecordedRig({}, { maxFolderMb: 0.01 });
    expect(await speak(rig)).toBe(FRAMES);
    expect(await speak(rig, "t")).toBe(FRAMES);
    expect(readLines(rig.disk.lines()).end).toBe("folder_full");
    expect(rig.disk.files.size).toBe(1);
    expect(rig.recordings.state).toBe("full");
    expect(rig.recordings.figures.ended.get("folder_full")).toBe(2);
  });

  it("on a full disk: speech goes on, the log warns once and a metric counts", async () => {
    const { log, lines } = notedLog();
    const rig = createRecordedRig({}, {}, log);
    rig.disk.room = 3000;
    expect(await speak(rig)).toBe(FRAMES);
    rig.disk.room = 0;
    expect(await speak(rig, "t")).toBe(FRAMES);
    expect(rig.recordings.figures.ended.get("disk")).toBe(2);
    expect(lines).toHaveLength(1);
    expect(rig.recordings.state).toBe("failing");
    const whole = readLines(rig.disk.lines());
    expect(whole.end).toBeNull();
    expect(replay(whole).difference).toBeNull();
  });

  it("ends where the disk is slower than the session, and is byte-exact up to there", async () => {
    const rig = createRecordedRig({}, { maxSessionMb: 64, maxFolderMb: 256 });
    let goOn = (): void => undefined;
    rig.disk.ready = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const { listener, send } = rig.join("format=ulaw_8000&events=words");
    send({ type: "speak", text: "Xylophone canary." });
    await settled();
    const request = rig.requests.at(-1);
    request?.head();
    for (let chunks = 0; chunks < 3; chunks += 1) request?.chunk(countingUlaw(700_000));
    const framesBefore = listener.frames.length;
    rig.clock.advance(1000);
    expect(listener.frames.length).toBeGreaterThan(framesBefore);
    expect(rig.recordings.figures.ended.get("lost")).toBe(1);
    goOn();
    await rig.recordings.close();
    const recording = readLines(rig.disk.lines());
    expect(recording.end).toBe("lost");
    expect(replay(recording)).toMatchObject({ difference: null, entries: recording.entries.length });
    expect(endSentence(recording.end)).toBe(
      "On a disk that was slower than the session. The session went on, and what came then is not in it",
    );
  });

  it("leaves room on the disk to others", async () => {
    const rig = createRecordedRig();
    rig.disk.freeBytes = 1000;
    rig.clock.advance(5000);
    await settled();
    expect(await speak(rig)).toBe(FRAMES);
    expect(rig.disk.files.size).toBe(0);
    expect(rig.recordings.figures.ended.get("disk")).toBe(1);
  });

  it("ends before a text that is not to be kept, which is not in it", async () => {
    const rig = createRecordedRig();
    expect(await speak(rig, "s", { enable_logging: false })).toBe(FRAMES);
    await rig.recordings.close();
    expect([...rig.disk.files.values()].join("")).not.toContain("Xylophone");
    expect(readLines(rig.disk.lines()).end).toBe("zero_retention");
  });

  it("without texts: none of them, no audio, no token is in it", async () => {
    const rig = createRecordedRig({}, { isRedacted: true });
    expect(await speak(rig)).toBe(FRAMES);
    await rig.recordings.close();
    const text = [...rig.disk.files.values()].join("");
    for (const part of [
      "Xylophone",
      "canary",
      "Xylo",
      Buffer.from(countingUlaw(1000)).toString("base64").slice(0, 40),
    ])
      expect(text).not.toContain(part);
    const { head, entries } = readLines(rig.disk.lines());
    expect(head.text).toBe("hashed");
    expect(entries.length).toBeGreaterThan(20);
    expect(text).toContain("utterance.started");
  });

  it("with texts: has no token with which a connection comes back", async () => {
    const rig = createRecordedRig();
    const { participant } = rig.join("format=ulaw_8000");
    await rig.recordings.close();
    expect([...rig.disk.files.values()].join("")).not.toContain(participant.returnToken);
  });
});

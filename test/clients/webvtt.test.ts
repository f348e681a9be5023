/** Every WebVTT file that the gateway and the commands make, read by two parsers of others that forgive nothing. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { CueEvent } from "../../src/protocol/events.ts";
import { CUE_MODES, CUE_PROFILES } from "../../src/protocol/vocabulary.ts";
import { missingForSpeech, PATIENT, Program, run, temporaryFolder } from "../cli/program.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { areInstalled, IF_INSTALLED } from "./installed.ts";
import { readByOthers, type SeenCue } from "./vtt-readers.ts";

vi.setConfig(PATIENT);
const PACKAGES = ["webvtt-parser", "media-captions"];
const missing = missingForSpeech();

/** What would end a cue, a block or a tag where it is not written as the specification has it. */
const HARD_TEXT =
  "Fish & chips for 3 < 5, as 00:01.000 --> 00:02.000 says. WEBVTT is <b>not</b> bold &amp; &lt; neither. " +
  "NOTE to STYLE: { color: red } 😀 is 我们去北京。 مرحبا بكم!";
/** Tags are no words: they are not shown. */
const SHOWN_TEXT = HARD_TEXT.replaceAll(/<\/?b>/g, "");
const DIALOGUE = {
  type: "dialogue",
  inputs: [
    { text: "Good evening --> to you & yours.", voice_id: "a", speaker: "Ana <& Co>" },
    { text: "And to you! <v Nobody> is here.", voice_id: "b" },
    { text: "Good night.", voice_id: "a", speaker: "Ana <& Co>" },
  ],
};

/** An event as a file holds it. */
const seenOf = ({ start_ms, end_ms, speaker, lines }: CueEvent): SeenCue => ({
  startMs: Math.round(start_ms),
  endMs: Math.round(end_ms),
  voice: speaker ?? null,
  text: lines.map((line) => line.text).join("\n"),
});

const textOf = (cues: readonly SeenCue[]): string =>
  cues
    .map(({ text }) => text)
    .join(" ")
    .replaceAll(/\s+/g, " ");

describe.skipIf(!areInstalled(...PACKAGES))(
  `webvtt-parser and media-captions ${IF_INSTALLED}`,
  { concurrent: true },
  () => {
    let upstream: FakeUpstream;
    let gateway: TestGateway;

    beforeAll(async () => {
      upstream = await startFakeUpstream(speaking({ msPerChar: 25 }));
      gateway = await gatewayAt(upstream.url, { captions: "always" });
    });
    afterAll(async () => {
      await gateway?.close();
      await upstream?.close();
    });

    const join = (session: string, query = ""): Promise<TestClient> =>
      TestClient.connect(gateway, `/live/${session}?format=ulaw_8000&events=cues,presence${query}`);

    async function fileOf(session: string, query = ""): Promise<string> {
      const response = await fetch(`${gateway.url}/live/${session}/captions.vtt?live=false${query}`);
      expect([response.status, response.headers.get("content-type")]).toEqual([
        200,
        "text/vtt; charset=utf-8",
      ]);
      return await response.text();
    }

    it("refuse what is no WebVTT", async () => {
      for (const broken of [
        "WEBVTT\n\n00:01.000 -> 00:02.000\nHello.\n\n",
        "WEBVTT\n\n00:02.000 --> 00:01.000\nHello.\n\n",
        "WEBVTT\n\n00:01.000 --> 00:02.000\n<x>Hello.\n\n",
        "WEBVT\n\n00:01.000 --> 00:02.000\nHello.\n\n",
      ]) {
        await expect(readByOthers(broken)).rejects.toThrow();
      }
    });

    it("the file of every profile and mode has the cues that its listeners get", async () => {
      const styles = CUE_PROFILES.flatMap((profile) =>
        CUE_MODES.map((mode) => `&cue_profile=${profile}&cue_mode=${mode}`),
      );
      await using client = await join("styles");
      await client.next("hello");
      const listeners = await Promise.all(
        styles.map((style) =>
          TestClient.connect(gateway, `/live/styles?role=listener&format=none&events=cues${style}`),
        ),
      );
      // A style is kept from when it is first asked for.
      for (const style of styles) expect(await fileOf("styles", style)).toBe("WEBVTT\n\n");
      client.send({ type: "speak", text: HARD_TEXT, voice_id: "v" });
      for (const listener of listeners) await listener.next("utterance.done");
      for (const [index, style] of styles.entries()) {
        const received = listeners[index]?.eventsOf("cue").map(seenOf) ?? [];
        expect(received.length).toBeGreaterThan(1);
        for (const words of ["", "&words=true"])
          expect([style, await readByOthers(await fileOf("styles", style + words))]).toEqual([
            style,
            received,
          ]);
      }
      for (const listener of listeners) await listener[Symbol.asyncDispose]();
    });

    it("the speakers of a dialogue have the names that were given", async () => {
      await using client = await join("dialogue");
      client.send(DIALOGUE);
      await client.next("utterance.done");
      const cues = await readByOthers(await fileOf("dialogue", "&words=true"));
      expect(cues).toEqual(client.eventsOf("cue").map(seenOf));
      expect(cues.map(({ voice, text }) => [voice, text])).toEqual([
        ["Ana <& Co>", "Good evening --> to you & yours."],
        ["Speaker 2", "And to you! <v Nobody> is here."],
        ["Ana <& Co>", "Good night."],
      ]);
    });

    it("a file that grows is whole at the session's end, one that is empty is a file", async () => {
      await using other = await gatewayAt(upstream.url);
      await using client = await TestClient.connect(other, "/live/s?format=ulaw_8000&events=cues");
      await client.next("hello");
      const growing = await fetch(`${other.url}/live/s/captions.vtt?words=true`);
      expect(
        await readByOthers(await (await fetch(`${other.url}/live/s/captions.vtt?live=false`)).text()),
      ).toEqual([]);
      client.send({ type: "speak", text: HARD_TEXT, voice_id: "v" });
      client.send(DIALOGUE);
      await client.next("utterance.done", 2);
      await other.close();
      expect(await readByOthers(await growing.text())).toEqual(client.eventsOf("cue").map(seenOf));
    });

    it("speech that is interrupted leaves a file without faults", async () => {
      await using client = await join("cut");
      client.send({ type: "speak", text: `${HARD_TEXT} ${HARD_TEXT}`, voice_id: "v" });
      await client.until(() => client.frames.length > 100);
      client.send({ type: "interrupt" });
      const cut = await client.next("interrupted");
      const cues = await readByOthers(await fileOf("cut", "&words=true"));
      expect(cues.length).toBeGreaterThan(0);
      expect(cues.at(-1)?.endMs).toBeLessThanOrEqual(Math.round(cut.at_ms));
    });

    describe.skipIf(missing !== undefined)(
      `commands${missing === undefined ? "" : ` (skipped: ${missing})`}`,
      () => {
        const folder = temporaryFolder();
        afterAll(() => folder[Symbol.dispose]());

        it("say --vtt, from an argument, from a pipe and of a dialogue", async () => {
          const script = folder.file("dialogue.txt");
          writeFileSync(script, "Tone A: Good evening --> to you.\nTone B: And to you!\n");
          const voice = ["--voice", "Tone A"];
          const spoken = "Good evening --> to you. And to you!";
          for (const [name, args, stdin, text, voices] of [
            ["argument", [...voice, HARD_TEXT], undefined, SHOWN_TEXT, [null]],
            ["pipe", voice, HARD_TEXT, SHOWN_TEXT, [null]],
            ["dialogue", ["--dialogue", script], undefined, spoken, ["Tone A", "Tone B"]],
          ] as const) {
            const vtt = folder.file(`${name}.vtt`);
            const { code, stderr } = await run(
              ["say", "--url", gateway.url, "--vtt", vtt, "--out", folder.file("x.wav"), ...args],
              stdin === undefined ? {} : { stdin },
            );
            expect([code, stderr]).toEqual([0, expect.stringContaining(`Wrote ${vtt}`)]);
            const cues = await readByOthers(readFileSync(vtt, "utf8"));
            expect(textOf(cues)).toBe(text);
            expect([...new Set(cues.map((cue) => cue.voice))]).toEqual(voices);
          }
        });

        it("captions --vtt writes what a listener gets", async () => {
          const vtt = folder.file("followed.vtt");
          await using client = await join("followed");
          await client.next("hello");
          await using program = new Program(["captions", "followed", "--url", gateway.url, "--vtt", vtt]);
          // Not by the gateway's count: others may come.
          const follows = (): boolean => client.eventsOf("presence").some(({ listeners }) => listeners === 2);
          await until("it follows", follows, { deadlineMs: 60_000 });
          client.send(DIALOGUE);
          await client.next("utterance.done");
          await program.until(() => existsSync(vtt) && readFileSync(vtt, "utf8").includes("night."));
          program.child.kill("SIGINT");
          await program.ended;
          const cues = await readByOthers(readFileSync(vtt, "utf8"));
          expect(cues.map(({ voice, text }) => [voice, text])).toEqual(
            client
              .eventsOf("cue")
              .map(seenOf)
              .map(({ voice, text }) => [voice, text]),
          );
        });
      },
    );
  },
);

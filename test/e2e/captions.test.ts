/** Captions against what is heard, and in a real browser: its own `<track>` and its own EventSource. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { decodeSamples } from "../../src/audio/codecs/samples.ts";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { countingUlaw, createRig } from "../helpers/session-rig.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { readStrictVtt } from "../helpers/strict-vtt.ts";
import { until } from "../helpers/until.ts";
import { launchBrowser, whyNoBrowser } from "../page/browser.ts";
import { Answering, toneOf } from "../unit/session/scripted-speech.ts";

const FRAME_MS = 20;

describe("cue times", () => {
  it("are within a frame of where the decoded audio begins and ends to sound", () => {
    const rig = createRig({
      aheadMs: 10_000,
      trimMs: 500,
      pauseClauseMs: 120,
      pauseSentenceMs: 300,
      pauseParagraphMs: 500,
    });
    const { listener, send } = rig.join("format=ulaw_8000&events=cues");
    send({ type: "speak", text: "Good morning. Good night.", voice_id: "v" });
    const request = rig.requests[0];
    if (request === undefined) throw new Error("Nothing was asked for");
    // Silence before, between and behind; the one before is trimmed.
    const pieces = [
      { text: "Good morning.", at: 230 },
      { text: " Good night.", at: 2230 },
    ];
    const audio = countingUlaw(4000).fill(0xff);
    const alignment = {
      characters: [] as string[],
      character_start_times_seconds: [] as number[],
      character_end_times_seconds: [] as number[],
    };
    for (const { text, at } of pieces) {
      const tone = toneOf("ulaw_8000", text.trim(), { msPerChar: 50 });
      audio.set(tone.audio, at * 8);
      if (text.startsWith(" ")) {
        alignment.characters.push(" ");
        alignment.character_start_times_seconds.push((at - 10) / 1000);
        alignment.character_end_times_seconds.push(at / 1000);
      }
      const { characters, character_start_times_seconds, character_end_times_seconds } = tone.alignment;
      alignment.characters.push(...characters);
      alignment.character_start_times_seconds.push(
        ...character_start_times_seconds.map((s) => s + at / 1000),
      );
      alignment.character_end_times_seconds.push(...character_end_times_seconds.map((s) => s + at / 1000));
    }
    request.head();
    request.chunk(audio, { alignment });
    request.handlers.end();
    for (let passed = 0; passed < 6000; passed += 5) rig.clock.advance(5);
    const heard = decodeSamples("ulaw", Buffer.concat(listener.frames));
    const cues = listener.eventsOf("cue");
    expect(cues.map((cue) => cue.lines.map((line) => line.text))).toEqual([
      ["Good morning."],
      ["Good night."],
    ]);
    const isLoud = (sample: number): boolean => Math.abs(sample) > 2000;
    const firstOn = heard.findIndex(isLoud) / 8;
    const secondOn = heard.findIndex((sample, index) => index > (firstOn + 1200) * 8 && isLoud(sample)) / 8;
    expect(Math.abs((cues[0]?.start_ms ?? 0) - firstOn)).toBeLessThanOrEqual(FRAME_MS);
    expect(Math.abs((cues[1]?.start_ms ?? 0) - secondOn)).toBeLessThanOrEqual(FRAME_MS);
    // The silence before was trimmed, so the times are not those of the response.
    expect(firstOn).toBeLessThan(100);
    expect(cues[0]?.end_ms).toBeGreaterThanOrEqual(firstOn + 13 * 50 - FRAME_MS);
  });
});

describe("cue_profile and cue_mode", () => {
  it("are each listener's own, stated in hello, and changed by configure", () => {
    const rig = createRig({ stallMs: 1e6 });
    const text = "The first sentence has a few words in it.";
    const web = rig.join("format=ulaw_8000&events=cues");
    const phone = rig.join("role=listener&format=none&events=cues&cue_profile=phone");
    const rolling = rig.join("role=listener&format=none&events=cues&cue_profile=phone&cue_mode=roll-up");
    const linesOf = ({ listener }: typeof web) =>
      listener.eventsOf("cue").map((cue) => cue.lines.map((line) => line.text));
    const answering = new Answering(rig, { msPerChar: 40 });
    web.send({ type: "speak", text, voice_id: "v" });
    answering.run(3000);
    expect(linesOf(web)).toEqual([[text]]);
    expect(linesOf(phone)).toEqual([["The first sentence", "has a few words in it."]]);
    expect(linesOf(rolling)).toEqual([
      ["The first sentence"],
      ["The first sentence", "has a few words in it."],
    ]);
    expect(phone.listener.eventsOf("hello")[0]?.settings).toMatchObject({
      cue_profile: "phone",
      cue_mode: "pop-on",
    });
    phone.send({ type: "configure", cue_profile: "web" });
    web.send({ type: "speak", text, voice_id: "v" });
    answering.run(3000);
    expect(linesOf(phone).slice(1)).toEqual([[text]]);
    expect(web.listener.eventsOf("cue")[0]).toMatchObject({ voice_id: "v" });
    expect(() => rig.join("events=cues&cue_mode=paint-on")).toThrow(/Setting cue_mode/);
    expect(() => web.send({ type: "configure", cue_profile: "cinema" })).toThrow(/cue_profile/);
  });
});

const reason = whyNoBrowser();

describe.skipIf(reason !== null)(`in a browser${reason === null ? "" : ` (skipped: ${reason})`}`, () => {
  it("a <track> has every cue, and an EventSource follows them", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url, { captions: "always" });
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&events=none");
    await client.next("hello");
    // A page of another origin, as pages are.
    const page = createServer((_, response) =>
      response.setHeader("content-type", "text/html").end("<!doctype html>"),
    );
    page.listen(0, "127.0.0.1");
    await once(page, "listening");
    const browser = await launchBrowser();
    try {
      const tab = await browser.newPage();
      await tab.goto(`http://127.0.0.1:${(page.address() as AddressInfo).port}/`);
      const followed = tab.evaluate(
        (url) =>
          new Promise<string[]>((resolve) => {
            const texts: string[] = [];
            const source = new EventSource(url);
            source.addEventListener("cue", ({ data }) => {
              const { lines } = JSON.parse(data) as { lines: { text: string }[] };
              texts.push(lines.map((line) => line.text).join("\n"));
            });
            source.addEventListener("utterance.done", () => {
              source.close();
              resolve(texts);
            });
          }),
        `${gateway.url}/live/s/captions`,
      );
      await until("the page follows", () => gateway.counters.connectionsOpened === 2);
      client.send({
        type: "dialogue",
        inputs: [
          { text: "Fish & chips for 3 < 5.", voice_id: "a", speaker: "Ana & Co" },
          { text: "And a pint, please.", voice_id: "b" },
        ],
      });
      const received = await followed;
      await client.next("utterance.done");
      const url = `${gateway.url}/live/s/captions.vtt?live=false`;
      const tracked = await tab.evaluate(
        (src) =>
          new Promise<{ startMs: number; endMs: number; text: string | null; voice: string | null }[]>(
            (resolve, reject) => {
              const video = document.createElement("video");
              video.crossOrigin = "anonymous";
              const track = document.createElement("track");
              track.default = true;
              track.kind = "captions";
              track.src = src;
              track.onerror = () => reject(new Error("The browser did not take the file"));
              track.onload = () =>
                resolve(
                  [...(track.track.cues ?? [])].map((cue) => {
                    const shown = (cue as VTTCue).getCueAsHTML();
                    return {
                      startMs: Math.round(cue.startTime * 1000),
                      endMs: Math.round(cue.endTime * 1000),
                      text: shown.textContent,
                      voice: shown.querySelector("span")?.title ?? null,
                    };
                  }),
                );
              video.append(track);
              document.body.append(video);
              track.track.mode = "showing";
            },
          ),
        url,
      );
      const cues = readStrictVtt(await (await fetch(url)).text());
      expect(received).toEqual(["Fish & chips for 3 < 5.", "And a pint, please."]);
      expect(tracked).toEqual(
        cues.map(({ startMs, endMs, lines, voice }) => ({ startMs, endMs, text: lines.join("\n"), voice })),
      );
      expect(tracked.map(({ voice }) => voice)).toEqual(["Ana & Co", "Speaker 2"]);
    } finally {
      await browser.close();
      page.close();
      await once(page, "close");
    }
  }, 60_000);
});

/** A session goes on at another node: from what was saved there, each word is heard once. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseSettings } from "../../../../src/session/listener-settings.ts";
import { MemoryListener } from "../../../helpers/memory-listener.ts";
import { createRig } from "../../../helpers/session-rig.ts";
import { answer, heardOf, lettersOf, read, textOf, VOICE } from "../spelling.ts";

/** A frame is a letter long: of each letter all is heard, or nothing. */
const FRAME_MS = 50;
const QUERY = `format=ulaw_8000&lead_ms=200&frame_ms=${FRAME_MS}`;
const FORMER_EPOCH = "former";

type Rig = ReturnType<typeof createRig>;

/** Lets time pass, answering what is asked. */
function pass({ clock, requests }: Rig, ms: number, answered = new Set<unknown>()): void {
  for (let passed = 0; passed < ms; passed += 20) {
    for (const open of requests) {
      if (open.isAborted || answered.has(open)) continue;
      answered.add(open);
      answer(open);
    }
    clock.advance(20);
  }
}

/** The letters that were heard, and the end of the audio, ms. */
function heardBy(listener: MemoryListener): { readonly letters: string; readonly endMs: number } {
  const letters = heardOf(listener, "ulaw_8000", FRAME_MS)
    .map(({ audio }) => read(audio))
    .join("");
  const start = listener.eventsOf("hello")[0]?.audio?.start_ms ?? 0;
  return { letters, endMs: start + listener.frames.length * FRAME_MS };
}

/** Another node that has what was saved, with nobody there. */
function goOn(saved: ReturnType<ReturnType<Rig["sessions"]["open"]>["save"]>) {
  const rig = createRig();
  const session = rig.sessions.open("s");
  // Over the bus it is JSON.
  session.restore(JSON.parse(JSON.stringify(saved)) as typeof saved, FORMER_EPOCH);
  return { ...rig, session };
}

/** Letters of the words of which all letters were heard. */
function wholeWords(words: readonly string[], heard: string): string {
  let whole = "";
  for (const word of words) {
    if (whole.length + word.length > heard.length) break;
    whole += word;
  }
  return whole;
}

describe("speech that goes on at another node", () => {
  it("says each word once, wherever it stopped, with the client's own place and without", () => {
    const word = fc.stringMatching(/^[a-z]{1,7}$/);
    const text = fc.array(word, { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(
        fc.array(text, { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 0, max: 300 }),
        fc.boolean(),
        (texts, stop, hasPlace) => {
          const here = createRig();
          const { listener, send, session, participant } = here.join(QUERY);
          for (const words of texts) send({ type: "speak", text: words.join(" "), voice_id: VOICE });
          pass(here, stop * 20);
          const { letters, endMs } = heardBy(listener);
          const there = goOn(session.save());
          const place = hasPlace ? `&at_ms=${endMs}` : "";
          const again = there.join(`${QUERY}&resume=${participant.returnToken}${place}`);
          pass(there, 30_000);
          const words = texts.flat();
          const all = words.join("");
          expect(heardBy(again.listener).letters).toBe(all.slice(wholeWords(words, letters).length));
          expect(again.listener.eventsOf("hello")[0]?.former_epoch).toBe(FORMER_EPOCH);
          const ends = again.listener.eventsOf("utterance.done").filter(({ outcome }) => outcome === "done");
          const before = listener.eventsOf("utterance.done").length;
          expect(before + ends.length).toBe(texts.length);
        },
      ),
      { numRuns: 200 },
    );
  });

  it("a listener that comes later gets all that it has not heard", () => {
    const here = createRig();
    const one = here.join(QUERY);
    const two = here.join(`${QUERY}&role=listener`);
    one.send({ type: "speak", text: "alpha bravo charlie delta echo", voice_id: VOICE });
    pass(here, 900);
    const there = goOn(one.session.save());
    const back = (client: typeof one) =>
      there.join(`${QUERY}&resume=${client.participant.returnToken}&at_ms=${heardBy(client.listener).endMs}`);
    const first = back(one);
    pass(there, 400);
    const second = back(two);
    pass(there, 5000);
    const { letters } = heardBy(first.listener);
    expect(lettersOf("alpha bravo charlie delta echo").endsWith(letters)).toBe(true);
    expect(heardBy(second.listener).letters).toBe(letters);
  });

  it("says the words to who wants them, also where who wants none is back before them", () => {
    const here = createRig();
    const one = here.join(QUERY);
    const two = here.join(`${QUERY}&events=none&role=listener`);
    one.send({ type: "speak", text: "alpha bravo charlie delta echo", voice_id: VOICE });
    pass(here, 900);
    const there = goOn(one.session.save());
    const back = (client: typeof one, query: string) =>
      there.join(`${query}&resume=${client.participant.returnToken}&at_ms=${heardBy(client.listener).endMs}`);
    back(two, `${QUERY}&events=none&role=listener`);
    there.clock.advance(1);
    const { listener } = back(one, QUERY);
    pass(there, 5000);
    const words = listener.eventsOf("words").flatMap((event) => event.words.map(({ text }) => text));
    expect(words.slice(-2)).toEqual(["delta", "echo"]);
  });

  it("gives a text that is open to the connection whose it was, and to nobody else", () => {
    const here = createRig();
    const listener = new MemoryListener();
    const joining = parseSettings(new URLSearchParams(QUERY), { leadMs: 200, maxLeadMs: 10_000 });
    const session = here.sessions.open("s");
    const ann = session.join(listener, { ...joining, holder: "ann" });
    here.join(QUERY);
    const saved = session.save();
    expect(saved.connections.map(({ holder }) => holder)).toEqual(["ann", ""]);
    const there = goOn(saved);
    const query = new URLSearchParams(`${QUERY}&resume=${ann.returnToken}`);
    const resumed = parseSettings(query, { leadMs: 200, maxLeadMs: 10_000 });
    const thief = new MemoryListener();
    there.session.join(thief, { ...resumed, holder: "eve" });
    expect(thief.eventsOf("warning")).toMatchObject([{ code: "resume_refused" }]);
    const own = new MemoryListener();
    const back = there.session.join(own, { ...resumed, holder: "ann" });
    expect(own.eventsOf("warning")).toEqual([]);
    expect(back.formerId).toBe(ann.id);
  });

  it("goes on with tokens, marks and the id of who comes back", () => {
    const here = createRig();
    const { listener, send, session, participant } = here.join(QUERY);
    send({ type: "text", text: "alpha bravo. ", voice_id: VOICE, utterance_id: "u" });
    send({ type: "text", text: "charlie de" });
    send({ type: "mark", name: "m" });
    pass(here, 500);
    const { letters, endMs } = heardBy(listener);
    const there = goOn(session.save());
    const again = there.join(`${QUERY}&resume=${participant.returnToken}&at_ms=${endMs}`);
    again.send({ type: "text", text: "lta echo" });
    again.send({ type: "end" });
    pass(there, 8000);
    const words = ["alpha", "bravo", "charlie", "delta", "echo"];
    const rest = words.join("").slice(wholeWords(words, letters).length);
    expect(heardBy(again.listener).letters).toBe(rest);
    expect(again.listener.eventsOf("mark").map(({ name }) => name)).toEqual(["m"]);
    expect(again.listener.eventsOf("utterance.done")).toMatchObject([{ utterance_id: "u", outcome: "done" }]);
  });

  it("a text that nobody comes back for ends there, and what was said stays unsaid", () => {
    const here = createRig();
    const { listener, send, session } = here.join(QUERY);
    send({ type: "text", text: "alpha bravo. Charlie delta.", voice_id: VOICE, utterance_id: "u" });
    pass(here, 400);
    expect(heardBy(listener).letters).not.toBe("");
    const there = goOn({ ...session.save(), connections: [] });
    const again = there.join(QUERY);
    pass(there, 8000);
    expect(again.listener.eventsOf("utterance.done")).toMatchObject([{ utterance_id: "u", outcome: "done" }]);
  });

  it("offsets stay those of the client's text, where something else is spoken for it", () => {
    const here = createRig();
    const { listener, send, session, participant } = here.join(QUERY);
    const text = "go to NASA now and then home";
    const replacements = [{ from: "NASA", to: "the space agency" }];
    send({ type: "speak", text, voice_id: VOICE, utterance_id: "u", replacements });
    // Inside "agency".
    pass(here, 700);
    const { endMs } = heardBy(listener);
    const there = goOn(session.save());
    const again = there.join(`${QUERY}&resume=${participant.returnToken}&at_ms=${endMs}`);
    pass(there, 8000);
    const [resumed] = again.listener.eventsOf("utterance.resumed");
    expect(resumed?.start).toBe(text.indexOf("NASA"));
    expect(there.requests.map(textOf)).toEqual(["the space agency now and then home"]);
    const words = again.listener.eventsOf("words").flatMap((event) => event.words);
    for (const { start, end, text: word } of words.slice(-2)) expect(text.slice(start, end)).toBe(word);
  });

  it("a receipt counts what was heard before", () => {
    const here = createRig();
    const { listener, send, session, participant } = here.join(QUERY);
    send({ type: "speak", text: "alpha bravo charlie delta echo", voice_id: VOICE, utterance_id: "u" });
    pass(here, 600);
    const { endMs } = heardBy(listener);
    const there = goOn(session.save());
    const again = there.join(`${QUERY}&resume=${participant.returnToken}&at_ms=${endMs}`);
    pass(there, 600);
    again.send({ type: "interrupt" });
    const [cut] = again.listener.eventsOf("interrupted");
    expect(cut?.heard.text.startsWith("alpha bravo ")).toBe(true);
    expect(cut?.heard.ms).toBeGreaterThan(600);
    expect(`${cut?.heard.text}${cut?.unheard_text}`).toBe("alpha bravo charlie delta echo");
  });
});

describe("sounds of a session that goes on at another node", () => {
  it("are lost with their node, and the texts around them are said", () => {
    const here = createRig();
    const { send, session } = here.join(QUERY);
    const sound = { type: "play", format: "ulaw_8000", audio: Buffer.alloc(4000, 0x20).toString("base64") };
    send({ ...sound, utterance_id: "first" });
    send({ type: "speak", text: "abc", voice_id: VOICE, utterance_id: "text" });
    send({ ...sound, utterance_id: "last" });
    pass(here, 100);
    expect(session.speechReader().readPlaces()).toEqual([]);
    const saved = session.save();
    expect(saved.utterances.map(({ id }) => id)).toEqual(["text"]);
    const there = goOn(saved);
    const joined = there.join(QUERY);
    pass(there, 1500);
    expect(heardBy(joined.listener).letters).toBe("abc");
  });
});

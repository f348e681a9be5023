/** Pronunciation dictionaries with the vendor's own client: made, listed, changed, downloaded, and heard. */
import type { ElevenLabs } from "@elevenlabs/elevenlabs-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { measures } from "../helpers/measures.ts";
import { OTHER_VOICE, VOICE } from "./client.ts";
import { bytesOf, errorOf, type Sdk, startSdk } from "./sdk-client.ts";

let started: Sdk;
beforeAll(async () => {
  started = await startSdk();
});
afterAll(() => started[Symbol.asyncDispose]());

const PLS = `<?xml version="1.0" encoding="UTF-8"?>
<lexicon version="1.0" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon" alphabet="ipa" xml:lang="en-US">
  <lexeme><grapheme>tomato</grapheme><phoneme>təˈmɑːtoʊ</phoneme></lexeme>
  <lexeme><grapheme>UN</grapheme><alias>United Nations</alias></lexeme>
</lexicon>`;

type Rule = ElevenLabs.BodyAddAPronunciationDictionaryV1PronunciationDictionariesAddFromRulesPostRulesItem;

function alias(stringToReplace: string, said: string): Rule {
  return { type: "alias", stringToReplace, alias: said };
}

async function make(...rules: readonly Rule[]) {
  return await started.sdk.pronunciationDictionaries.createFromRules({ name: "test", rules: [...rules] });
}

interface Heard {
  readonly audio: Buffer;
  readonly written: string;
  readonly said: string;
  readonly starts: readonly number[];
  readonly saidStarts: readonly number[];
}

/** With a seed: the same request is the same bytes. */
async function say(
  text: string,
  locators: readonly ElevenLabs.PronunciationDictionaryVersionLocator[],
  more: { readonly modelId?: string; readonly languageCode?: string } = {},
): Promise<Heard> {
  const { audioBase64, alignment, normalizedAlignment } =
    await started.sdk.textToSpeech.convertWithTimestamps(VOICE, {
      text,
      seed: 1,
      outputFormat: "pcm_16000",
      pronunciationDictionaryLocators: [...locators],
      ...more,
    });
  return {
    audio: Buffer.from(audioBase64, "base64"),
    written: (alignment?.characters ?? []).join(""),
    said: (normalizedAlignment?.characters ?? []).join(""),
    starts: alignment?.characterStartTimesSeconds ?? [],
    saidStarts: normalizedAlignment?.characterStartTimesSeconds ?? [],
  };
}

describe("made", () => {
  it("from a file: name, file, description, and the rules of the lexicon", async () => {
    measures("POST /v1/pronunciation-dictionaries/add-from-file", "name", "the name of the dictionary");
    measures(
      "POST /v1/pronunciation-dictionaries/add-from-file",
      "file",
      "its rules, and what is said by them",
    );
    measures("POST /v1/pronunciation-dictionaries/add-from-file", "description", "its description");
    measures(
      "POST /v1/pronunciation-dictionaries/add-from-file",
      "workspace_access",
      "none: the one user is its admin",
    );
    const dictionaries = started.sdk.pronunciationDictionaries;
    const made = await dictionaries.createFromFile({
      name: "From a file",
      description: "About vegetables",
      workspaceAccess: "viewer",
      file: new File([PLS], "lexicon.pls", { type: "application/pls+xml" }),
    });
    expect(made).toMatchObject({ name: "From a file", description: "About vegetables", versionRulesNum: 2 });
    expect(made.permissionOnResource).toBe("admin");
    const { rules, ...shown } = await dictionaries.get(made.id);
    expect(shown).toMatchObject({ id: made.id, latestVersionId: made.versionId, latestVersionRulesNum: 2 });
    expect(shown.createdBy).toBe((await started.sdk.user.get()).userId);
    expect(rules).toEqual([
      expect.objectContaining({
        type: "phoneme",
        stringToReplace: "tomato",
        alphabet: "ipa",
        caseSensitive: true,
      }),
      expect.objectContaining({
        type: "alias",
        stringToReplace: "UN",
        alias: "United Nations",
        wordBoundaries: true,
      }),
    ]);
    const plain = await say("A tomato for the UN.", []);
    const heard = await say("A tomato for the UN.", [{ pronunciationDictionaryId: made.id }]);
    expect(heard.said).toBe("A tomato for the United Nations.");
    expect(heard.audio.equals(plain.audio)).toBe(false);
  });

  it("from a file that is no dictionary, has another encoding or is too large: 400 with the reason", async () => {
    const dictionaries = started.sdk.pronunciationDictionaries;
    const refusal = async (content: BlobPart) => {
      const file = new File([content], "lexicon.pls");
      const { statusCode, body } = await errorOf(dictionaries.createFromFile({ name: "x", file }));
      return { statusCode, detail: (body as { detail: object }).detail };
    };
    const notPls = { type: "validation_error", code: "invalid_file_type", param: "file" };
    expect(await refusal("<!DOCTYPE a [<!ENTITY b 'c'>]><lexicon/>")).toMatchObject({
      statusCode: 400,
      detail: notPls,
    });
    expect(await refusal(Uint8Array.of(0xff, 0xfe, 0x3c, 0))).toMatchObject({
      statusCode: 400,
      detail: notPls,
    });
    const large = { type: "invalid_request", code: "request_too_large" };
    expect(await refusal("<a>".padEnd(1024 ** 2 + 1))).toMatchObject({ statusCode: 400, detail: large });
  });

  it("from rules: name, description, rules, and access that the one user has anyway", async () => {
    measures("POST /v1/pronunciation-dictionaries/add-from-rules", "name", "the name of the dictionary");
    measures("POST /v1/pronunciation-dictionaries/add-from-rules", "rules", "its rules");
    measures("POST /v1/pronunciation-dictionaries/add-from-rules", "description", "its description");
    measures(
      "POST /v1/pronunciation-dictionaries/add-from-rules",
      "workspace_access",
      "none: the one user is its admin",
    );
    const dictionaries = started.sdk.pronunciationDictionaries;
    const made = await dictionaries.createFromRules({
      name: "From rules",
      description: "About queries",
      workspaceAccess: "viewer",
      rules: [alias("SQL", "sequel")],
    });
    expect(made).toMatchObject({ name: "From rules", description: "About queries", versionRulesNum: 1 });
    expect(made.permissionOnResource).toBe("admin");
    const shown = await dictionaries.get(made.id);
    expect(shown).toMatchObject({ name: "From rules", description: "About queries" });
    expect(shown.rules).toMatchObject([{ stringToReplace: "SQL", alias: "sequel" }]);
  });

  it("from rules: what can't be said is refused with 400 and named", async () => {
    const refusal = async (rule: Rule) => {
      const { statusCode, body } = await errorOf(make(rule));
      return `${statusCode} ${(body as { detail: { message: string } }).detail.message}`;
    };
    const phoneme = { type: "phoneme", stringToReplace: "a" } as const;
    expect(await refusal({ ...phoneme, phoneme: "ʁy", alphabet: "ipa" })).toMatch(/^400 .*'ʁ'/);
    expect(await refusal({ ...phoneme, phoneme: "T QQ1", alphabet: "cmu-arpabet" })).toMatch(/^400 .*'QQ1'/);
    expect(await refusal({ ...phoneme, phoneme: "a", alphabet: "x-sampa" })).toMatch(/^400 .*x-sampa/);
    expect(await refusal(alias("", "b"))).toMatch(/^400 .*string_to_replace/);
    expect(await refusal(alias("a", " "))).toMatch(/^400 .*alias/);
    expect(await refusal(alias("a".repeat(101), "b"))).toMatch(/^400 .*101/);
    const wrongTag = await started.http.post("/v1/pronunciation-dictionaries/add-from-rules", {
      name: "x",
      rules: [{ type: "other", string_to_replace: "a" }, {}, { type: "alias", string_to_replace: "a" }],
    });
    expect(wrongTag.status).toBe(422);
    expect(JSON.parse(wrongTag.body.toString()).detail).toMatchObject([
      { type: "union_tag_invalid", loc: ["body", "rules", 0] },
      { type: "union_tag_not_found", loc: ["body", "rules", 1] },
      { type: "missing", loc: ["body", "rules", 2, "alias", "alias"] },
    ]);
  });
});

describe("listed", () => {
  it("page_size, cursor, sort, sort_direction, include_archived, and archived", async () => {
    measures("GET /v1/pronunciation-dictionaries", "page_size", "how many a page has");
    measures("GET /v1/pronunciation-dictionaries", "cursor", "where the page begins");
    measures("GET /v1/pronunciation-dictionaries", "sort", "their order");
    measures("GET /v1/pronunciation-dictionaries", "sort_direction", "their order, turned round");
    measures("GET /v1/pronunciation-dictionaries", "include_archived", "whether archived ones are listed");
    measures("PATCH /v1/pronunciation-dictionaries/{dictionary_id}", "dictionary_id", "which one changes");
    measures("PATCH /v1/pronunciation-dictionaries/{dictionary_id}", "archived", "whether it is listed");
    measures("PATCH /v1/pronunciation-dictionaries/{dictionary_id}", "name", "its name in the list");
    await using other = await startSdk();
    const dictionaries = other.sdk.pronunciationDictionaries;
    const names = ["pear", "Apple", "fig"];
    const made: string[] = [];
    for (const name of names) made.push((await dictionaries.createFromRules({ name, rules: [] })).id);
    const walk = async (request: ElevenLabs.PronunciationDictionariesListRequest) => {
      const found: string[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = await dictionaries.list({ ...request, ...(cursor === undefined ? {} : { cursor }) });
        expect(page.pronunciationDictionaries.length).toBeLessThanOrEqual(request.pageSize ?? 30);
        found.push(...page.pronunciationDictionaries.map(({ name }) => name));
        expect(page.hasMore).toBe(page.nextCursor !== undefined && page.nextCursor !== null);
        if (!page.hasMore) return found;
        cursor = page.nextCursor;
      }
    };
    expect(await walk({})).toEqual(["fig", "Apple", "pear"]);
    expect(await walk({ pageSize: 1, sortDirection: "ASCENDING" })).toEqual(names);
    expect(await walk({ pageSize: 2, sort: "name", sortDirection: "ascending" })).toEqual([
      "Apple",
      "fig",
      "pear",
    ]);
    expect(await walk({ pageSize: 2, sort: "name" })).toEqual(["pear", "fig", "Apple"]);
    const archived = await dictionaries.update(made[0] ?? "", { archived: true, name: "Old pear" });
    expect(archived.archivedTimeUnix).toBeGreaterThan(1_700_000_000);
    expect(await walk({})).toEqual(["fig", "Apple"]);
    expect(await walk({ includeArchived: true })).toEqual(["fig", "Apple", "Old pear"]);
    const back = await dictionaries.update(made[0] ?? "", { archived: false });
    expect(back).toMatchObject({ name: "Old pear" });
    expect(await walk({})).toEqual(["fig", "Apple", "Old pear"]);
    for (const request of [{ pageSize: 0 }, { pageSize: 101 }, { cursor: "none" }, { sortDirection: "up" }]) {
      expect((await errorOf(dictionaries.list(request))).statusCode).toBe(400);
    }
  });
});

describe("changed", () => {
  it("add-rules replaces the rule for the same string, remove-rules removes, set-rules replaces all: each a version", async () => {
    measures(
      "GET /v1/pronunciation-dictionaries/{dictionary_id}",
      "dictionary_id",
      "the rules that are answered",
    );
    measures(
      "POST /v1/pronunciation-dictionaries/{dictionary_id}/add-rules",
      "dictionary_id",
      "which one has them",
    );
    measures(
      "POST /v1/pronunciation-dictionaries/{dictionary_id}/add-rules",
      "rules",
      "the rules that it has then",
    );
    measures(
      "POST /v1/pronunciation-dictionaries/{dictionary_id}/remove-rules",
      "dictionary_id",
      "which one loses them",
    );
    measures(
      "POST /v1/pronunciation-dictionaries/{dictionary_id}/remove-rules",
      "rule_strings",
      "the rules that it has then",
    );
    measures(
      "POST /v1/pronunciation-dictionaries/{dictionary_id}/set-rules",
      "dictionary_id",
      "which one has them",
    );
    measures(
      "POST /v1/pronunciation-dictionaries/{dictionary_id}/set-rules",
      "rules",
      "the rules that it has then",
    );
    const { rules, get } = {
      rules: started.sdk.pronunciationDictionaries.rules,
      get: async (id: string) =>
        (await started.sdk.pronunciationDictionaries.get(id)).rules.map((rule) => rule.stringToReplace),
    };
    const { id, versionId } = await make(alias("one", "uno"), alias("two", "dos"));
    const added = await rules.add(id, { rules: [alias("one", "eins"), alias("six", "seis")] });
    expect(added).toMatchObject({ id, versionRulesNum: 3 });
    expect(await get(id)).toEqual(["two", "one", "six"]);
    const removed = await rules.remove(id, { ruleStrings: ["two", "nothing"] });
    expect(removed.versionRulesNum).toBe(2);
    expect(await get(id)).toEqual(["one", "six"]);
    const set = await rules.set(id, { rules: [alias("ten", "diez")] });
    expect(await get(id)).toEqual(["ten"]);
    expect(new Set([versionId, added.versionId, removed.versionId, set.versionId]).size).toBe(4);
  });

  it("what changes no rule makes no version", async () => {
    const { rules } = started.sdk.pronunciationDictionaries;
    const { id, versionId } = await make(alias("café", "x"), alias("two", "dos"));
    for (const { versionId: after, versionRulesNum } of [
      await rules.remove(id, { ruleStrings: ["nothing"] }),
      await rules.remove(id, { ruleStrings: [] }),
      await rules.add(id, { rules: [] }),
      await rules.add(id, { rules: [alias("two", "dos")] }),
      await rules.set(id, { rules: [alias("café", "x"), alias("two", "dos")] }),
    ]) {
      expect([after, versionRulesNum]).toEqual([versionId, 2]);
    }
    // The same string, with its accent in a character of its own.
    const removed = await rules.remove(id, { ruleStrings: ["cafe\u0301"] });
    expect(removed.versionRulesNum).toBe(1);
    expect(removed.versionId).not.toBe(versionId);
  });

  it("a version is downloaded as it was: a PLS file that can be sent again", async () => {
    measures(
      "GET /v1/pronunciation-dictionaries/{dictionary_id}/{version_id}/download",
      "dictionary_id",
      "the rules in the file",
    );
    measures(
      "GET /v1/pronunciation-dictionaries/{dictionary_id}/{version_id}/download",
      "version_id",
      "the rules of that version",
    );
    const dictionaries = started.sdk.pronunciationDictionaries;
    const { id, versionId } = await make(alias("R&D", "are and dee"), {
      type: "phoneme",
      stringToReplace: "tomato",
      phoneme: "T AH0 M AA1 T OW0",
      alphabet: "cmu-arpabet",
    });
    await dictionaries.rules.set(id, { rules: [] });
    const pls = await bytesOf(await dictionaries.download(id, versionId));
    expect(pls.toString()).toContain("<grapheme>R&amp;D</grapheme>");
    const again = await dictionaries.createFromFile({
      name: "again",
      file: new File([Uint8Array.from(pls)], "a.pls"),
    });
    expect((await dictionaries.get(again.id)).rules).toEqual([
      expect.objectContaining({ stringToReplace: "R&D", alias: "are and dee" }),
      expect.objectContaining({
        stringToReplace: "tomato",
        phoneme: "T AH0 M AA1 T OW0",
        alphabet: "cmu-arpabet",
      }),
    ]);
    const { statusCode, body } = await errorOf(dictionaries.download(id, "none"));
    expect(statusCode).toBe(404);
    expect(body).toMatchObject({ detail: { param: "version_id" } });
  });

  it("one that is not there: 404 pronunciation_dictionary_not_found everywhere", async () => {
    const { pronunciationDictionaries: dictionaries } = started.sdk;
    const locator = [{ pronunciationDictionaryId: "none" }];
    const { id } = await make();
    for (const call of [
      () => dictionaries.get("none"),
      () => dictionaries.update("none", { name: "x" }),
      () => dictionaries.download("none", "none"),
      () => dictionaries.rules.add("none", { rules: [] }),
      () => dictionaries.rules.remove("none", { ruleStrings: [] }),
      () => dictionaries.rules.set("none", { rules: [] }),
      () => say("x", locator),
      () => say("x", [{ pronunciationDictionaryId: id, versionId: "none" }]),
    ]) {
      const { statusCode, body } = await errorOf(call());
      expect(statusCode).toBe(404);
      expect(body).toMatchObject({ detail: { code: "pronunciation_dictionary_not_found" } });
    }
  });
});

describe("pronunciation_dictionary_locators", () => {
  it("an alias is said, and both alignments count in their own text", async () => {
    measures(
      "POST /v1/text-to-speech/{voice_id}",
      "pronunciation_dictionary_locators[].pronunciation_dictionary_id",
      "what is said, and its times",
    );
    const { id } = await make(alias("SQL", "sequel"));
    const text = "Ask SQL and SQLite again.";
    const heard = await say(text, [{ pronunciationDictionaryId: id }]);
    const spelled = await say("Ask sequel and SQLite again.", []);
    expect(heard.written).toBe(text);
    expect(heard.said).toBe("Ask sequel and SQLite again.");
    expect(heard.audio.equals(spelled.audio)).toBe(true);
    for (const word of ["and", "SQLite", "again"]) {
      expect(heard.starts[text.indexOf(word)], word).toBe(heard.saidStarts[heard.said.indexOf(word)]);
    }
    expect(heard.starts[text.indexOf("SQL")]).toBe(heard.saidStarts[heard.said.indexOf("sequel")]);
  });

  it("a phoneme is heard in every model, in either alphabet, and the text stays as it is", async () => {
    const base = { type: "phoneme", stringToReplace: "tomato" } as const;
    const ipa = await make({ ...base, phoneme: "təˈmɑːtoʊ", alphabet: "ipa" });
    const arpabet = await make({ ...base, phoneme: "T AH0 M AA1 T OW0", alphabet: "cmu-arpabet" });
    const text = "A tomato again.";
    const plain = await say(text, []);
    for (const modelId of ["eleven_v3", "eleven_multilingual_v2", "eleven_flash_v2"]) {
      const [first, second] = [
        await say(text, [{ pronunciationDictionaryId: ipa.id }], { modelId }),
        await say(text, [{ pronunciationDictionaryId: arpabet.id }], { modelId }),
      ];
      expect(first.said).toBe(text);
      expect(first.written).toBe(text);
      expect(first.audio.equals(plain.audio)).toBe(false);
      expect(first.audio.equals(second.audio)).toBe(true);
    }
    // As the engine says what sounds the same: the stress and the vowels are the rule's.
    const sounds = await say("A tomahto again.", []);
    const same = await say(text, [{ pronunciationDictionaryId: ipa.id }]);
    expect(Math.abs(same.audio.length - sounds.audio.length) / 32_000).toBeLessThan(0.1);
  });

  it("version_id names an old version, without it the latest is used", async () => {
    measures(
      "POST /v1/text-to-speech/{voice_id}",
      "pronunciation_dictionary_locators[].version_id",
      "which version is said",
    );
    measures(
      "POST /v1/text-to-dialogue",
      "pronunciation_dictionary_locators[].version_id",
      "which version is said",
    );
    const { id, versionId } = await make(alias("word", "old"));
    await started.sdk.pronunciationDictionaries.rules.set(id, { rules: [alias("word", "new")] });
    expect((await say("A word.", [{ pronunciationDictionaryId: id }])).said).toBe("A new.");
    const old = [{ pronunciationDictionaryId: id, versionId }];
    expect((await say("A word.", old)).said).toBe("A old.");
    const dialogue = await started.sdk.textToDialogue.convertWithTimestamps({
      inputs: [{ text: "A word.", voiceId: VOICE }],
      pronunciationDictionaryLocators: old,
    });
    expect(dialogue.normalizedAlignment?.characters.join("")).toBe("A old.");
  });

  it("up to three are used in order, a fourth is refused", async () => {
    const ids = [];
    for (const said of ["first", "second", "third"]) {
      ids.push({
        pronunciationDictionaryId: (
          await make(alias("word", said), alias(said, "wrong"), alias(`${said}ly`, "ok"))
        ).id,
      });
    }
    expect((await say("word thirdly", ids)).said).toBe("first ok");
    expect((await say("word thirdly", ids.toReversed())).said).toBe("third ok");
    expect((await errorOf(say("word", [...ids, ...ids]))).statusCode).toBe(400);
  });

  it("in dialogues, streams and other languages, with breaks and audio tags in between", async () => {
    measures(
      "POST /v1/text-to-dialogue",
      "pronunciation_dictionary_locators[].pronunciation_dictionary_id",
      "what is said, and its times",
    );
    const { id } = await make(alias("SQL", "sequel"), {
      type: "phoneme",
      stringToReplace: "tomato",
      phoneme: "təˈmɑːtoʊ",
      alphabet: "ipa",
    });
    const locators = [{ pronunciationDictionaryId: id }];
    const dialogue = await started.sdk.textToDialogue.convertWithTimestamps({
      inputs: [
        { text: "Ask SQL.", voiceId: VOICE },
        { text: "[laughs] Which SQL?", voiceId: OTHER_VOICE },
      ],
      pronunciationDictionaryLocators: locators,
    });
    expect(dialogue.normalizedAlignment?.characters.join("")).toBe("Ask sequel.Which sequel?");
    expect(dialogue.alignment?.characters.join("")).toBe("Ask SQL.[laughs] Which SQL?");
    const whole = await bytesOf(
      await started.sdk.textToSpeech.stream(VOICE, {
        text: "Ask SQL.",
        outputFormat: "pcm_16000",
        seed: 1,
        pronunciationDictionaryLocators: locators,
      }),
    );
    expect(whole.equals((await say("Ask SQL.", locators)).audio)).toBe(true);
    const german = await say('Das ist <break time="0.2s"/> tomato SQL und 3 Dinge.', locators, {
      languageCode: "de",
    });
    expect(german.said).toBe("Das ist tomato sequel und 3 Dinge.");
  });

  it("the history keeps them", async () => {
    const { id } = await make(alias("SQL", "sequel"));
    await say("SQL of the history", [{ pronunciationDictionaryId: id }]);
    const { history } = await started.sdk.history.list({ search: "SQL of the history", source: "TTS" });
    expect(history[0]?.settings).toMatchObject({
      pronunciation_dictionary_locators: [{ pronunciation_dictionary_id: id, version_id: null }],
    });
  });
});

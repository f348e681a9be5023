/** The catalogue endpoints, and that the voices differ to the ear: pitch and spectrum of the same sentence. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { measures } from "../helpers/measures.ts";
import { type Client, OTHER_VOICE, startClient, VOICE } from "./client.ts";

interface VoiceRecord {
  readonly voice_id: string;
  readonly name: string;
  readonly category: string;
  readonly labels: Readonly<Record<string, string>>;
}
interface Page {
  readonly voices: readonly VoiceRecord[];
  readonly has_more: boolean;
  readonly total_count: number;
  readonly next_page_token: string | null;
}
/** Of received pronunciation, and of German. */
const GILES = "JBFqnCBsd6RMkjVDRZzb";
const JUERGEN = "t6YbN1xGd8KsQf3MvJ0o";
const SENTENCE = "The quick brown fox jumps over the lazy dog.";
let client: Client;

beforeAll(async () => {
  client = await startClient();
});
afterAll(() => client[Symbol.asyncDispose]());

async function get<T>(path: string): Promise<T> {
  const answer = await client.get(path);
  expect(answer.status).toBe(200);
  return JSON.parse(answer.body.toString()) as T;
}

describe("GET /v1/voices", () => {
  it("lists voices with the ids that clients default to", async () => {
    const { voices } = await get<{ voices: VoiceRecord[] }>("/v1/voices");
    const ids = voices.map((voice) => voice.voice_id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual(expect.arrayContaining([VOICE, "bIHbv24MWmeRgasZH58o", "hpp4J3VqNfWAUOO0d1Us"]));
    const english = voices.filter((voice) => voice.labels.language === "en");
    expect(english.length).toBeGreaterThanOrEqual(8);
    for (const voice of voices) {
      expect(voice.category).toBe("premade");
      expect(Object.keys(voice.labels).sort()).toEqual([
        "accent",
        "age",
        "descriptive",
        "gender",
        "language",
        "use_case",
      ]);
      expect(voice).toMatchObject({
        samples: null,
        is_legacy: false,
        is_mixed: false,
        available_for_tiers: [],
      });
    }
  });
  it("gives one voice, or 404", async () => {
    measures("GET /v1/voices/{voice_id}", "voice_id", "the voice that is answered");
    expect(await get<VoiceRecord>(`/v1/voices/${OTHER_VOICE}`)).toMatchObject({
      voice_id: OTHER_VOICE,
      name: "Amos",
    });
    expect((await client.get("/v1/voices/nobody")).status).toBe(404);
  });
});

describe("GET /v2/voices", () => {
  it("pages through all voices once", async () => {
    measures("GET /v2/voices", "page_size", "how many voices a page has");
    measures("GET /v2/voices", "next_page_token", "where the page begins");
    const { voices: all } = await get<Page>("/v1/voices");
    const seen: string[] = [];
    let token: string | null = "";
    while (token !== null) {
      const page: Page = await get(`/v2/voices?page_size=7&next_page_token=${token}`);
      expect(page.total_count).toBe(all.length);
      expect(page.has_more).toBe(page.next_page_token !== null);
      expect(page.voices.length).toBeLessThanOrEqual(7);
      seen.push(...page.voices.map((voice) => voice.voice_id));
      token = page.next_page_token;
    }
    expect(seen.toSorted()).toEqual(all.map((voice) => voice.voice_id).toSorted());
    expect((await get<Page>("/v2/voices")).voices).toHaveLength(10);
  });
  it("filters and sorts", async () => {
    measures("GET /v2/voices", "search", "which voices are listed");
    measures("GET /v2/voices", "sort", "their order");
    measures("GET /v2/voices", "sort_direction", "their order, turned round");
    measures("GET /v2/voices", "voice_type", "which voices are listed");
    measures("GET /v2/voices", "category", "which voices are listed");
    measures("GET /v2/voices", "gender", "which voices are listed");
    measures("GET /v2/voices", "accent", "which voices are listed");
    measures("GET /v2/voices", "language", "which voices are listed");
    measures("GET /v2/voices", "voice_ids", "which voices are listed");
    const names = async (query: string) =>
      (await get<Page>(`/v2/voices?page_size=100&${query}`)).voices.map((voice) => voice.name);
    expect(await names("gender=female&accent=british")).toEqual(["Alma"]);
    expect(await names("search=SCOTTISH")).toEqual(["Hamish"]);
    expect(await names("language=de&language=ja")).toHaveLength(2);
    expect(await names("language=DE&language=Ja")).toEqual(await names("language=de&language=ja"));
    expect(await names(`voice_ids=${VOICE}&voice_ids=${OTHER_VOICE}&sort=name`)).toEqual(["Amos", "Nora"]);
    expect(await names("sort=name&sort_direction=desc")).toEqual((await names("sort=name")).toReversed());
    expect(await names("category=cloned")).toEqual([]);
    expect(await names("voice_type=personal")).toEqual([]);
  });
  it("takes a filter that is empty as none", async () => {
    const all = await client.get("/v2/voices");
    for (const name of [
      "fine_tuning_state",
      "collection_id",
      "gender",
      "age",
      "accent",
      "language",
      "use_cases",
      "voice_ids",
    ]) {
      const { status, body } = await client.get(`/v2/voices?${name}=`);
      expect([name, status, body.toString()]).toEqual([name, 200, all.body.toString()]);
    }
    const one = await get<Page>("/v2/voices?language=&language=ja");
    expect(one.voices.map(({ labels }) => labels.language)).toEqual(["ja"]);
  });
  it("lists no voice of high quality or with a notice period", async () => {
    measures("GET /v2/voices", "high_quality", "which voices are listed: none is one");
    measures("GET /v2/voices", "min_notice_period_days", "which voices are listed: none has one");
    const total = async (query: string) => (await get<Page>(`/v2/voices?${query}`)).total_count;
    const every = await total("");
    expect(await total("high_quality=false&min_notice_period_days=0")).toBe(every);
    expect(await total("high_quality=true")).toBe(0);
    expect(await total("min_notice_period_days=30")).toBe(0);
  });
  it("filters by age, use, state and collection, and counts where asked to", async () => {
    measures("GET /v2/voices", "age", "which voices are listed");
    measures("GET /v2/voices", "use_cases", "which voices are listed");
    measures("GET /v2/voices", "fine_tuning_state", "which voices are listed: none has one");
    measures("GET /v2/voices", "collection_id", "which voices are listed: none is in one");
    measures("GET /v2/voices", "include_total_count", "the count, or 0");
    const { voices: all } = await get<Page>("/v1/voices");
    const listed = async (query: string) =>
      (await get<Page>(`/v2/voices?page_size=100&${query}`)).voices.map((voice) => voice.voice_id).toSorted();
    const withLabel = (name: string, values: readonly string[]) =>
      all
        .filter(({ labels }) => values.includes(labels[name] ?? ""))
        .map((voice) => voice.voice_id)
        .toSorted();
    for (const age of ["young", "old"]) {
      const wanted = withLabel("age", [age]);
      expect(wanted.length).toBeGreaterThan(0);
      expect(wanted.length).toBeLessThan(all.length);
      expect(await listed(`age=${age}`)).toEqual(wanted);
    }
    const uses = [...new Set(all.map(({ labels }) => labels.use_case ?? ""))].slice(0, 2);
    expect(uses).toHaveLength(2);
    expect(await listed(`use_cases=${uses[0]?.toUpperCase()}`)).toEqual(
      withLabel("use_case", uses.slice(0, 1)),
    );
    expect(await listed(`use_cases=${uses[0]}&use_cases=${uses[1]}`)).toEqual(withLabel("use_case", uses));
    expect(await listed("fine_tuning_state=fine_tuned")).toEqual([]);
    expect(await listed("collection_id=mine")).toEqual([]);
    expect((await get<Page>("/v2/voices")).total_count).toBe(all.length);
    expect((await get<Page>("/v2/voices?include_total_count=false")).total_count).toBe(0);
  });
  it("refuses a token of the same order in the other direction", async () => {
    const { next_page_token: token } = await get<Page>("/v2/voices?page_size=7&sort=name&sort_direction=asc");
    const turned = `/v2/voices?sort=name&sort_direction=desc&next_page_token=${token}`;
    expect((await client.get(turned)).status).toBe(400);
  });
  it("refuses bad pages and values", async () => {
    for (const query of ["page_size=0", "page_size=101", "next_page_token=zzz"]) {
      expect((await client.get(`/v2/voices?${query}`)).status).toBe(400);
    }
    for (const query of ["page_size=x", "sort=age", "category=famous", "include_total_count=maybe"]) {
      expect((await client.get(`/v2/voices?${query}`)).status).toBe(422);
    }
  });
});

describe("GET /v1/models", () => {
  it("lists the models with their limits", async () => {
    const models =
      await get<{ model_id: string; maximum_text_length_per_request: number; languages: unknown[] }[]>(
        "/v1/models",
      );
    const flash = models.find((model) => model.model_id === "eleven_flash_v2_5");
    expect(flash).toMatchObject({
      maximum_text_length_per_request: 40_000,
      concurrency_group: "turbo",
      can_do_text_to_speech: true,
    });
    expect(flash?.languages).toContainEqual({ language_id: "ja", name: "Japanese" });
  });
});

describe("the voices", () => {
  it("sound apart: no two English ones share pitch, colour and pace", async () => {
    measures("POST /v1/text-to-speech/{voice_id}", "voice_id", "pitch, spectrum and pace of the speech");
    const { voices } = await get<{ voices: VoiceRecord[] }>("/v1/voices");
    const english = voices.filter((voice) => voice.labels.language === "en");
    const heard = await Promise.all(
      english.map(async (voice) => ({ ...(await listen(voice.voice_id)), voice })),
    );
    for (const [index, one] of heard.entries()) {
      expect(one.pitchHz).toBeGreaterThan(one.voice.labels.gender === "female" ? 140 : 60);
      expect(one.pitchHz).toBeLessThan(one.voice.labels.gender === "female" ? 320 : 140);
      for (const other of heard.slice(index + 1)) {
        const pitch = Math.abs(Math.log2(one.pitchHz / other.pitchHz)) * 12;
        const colour = Math.abs(Math.log2(one.crossings / other.crossings)) * 12;
        const pace = Math.abs(Math.log2(one.seconds / other.seconds)) * 12;
        expect(pitch + colour + pace, `${one.voice.name} and ${other.voice.name}`).toBeGreaterThan(1.5);
      }
    }
  });

  it("speak other languages with language_code and keep their pitch", async () => {
    const inFrench = await listen(OTHER_VOICE, {
      text: "Bonjour tout le monde, comment allez-vous ?",
      language_code: "fr",
    });
    const inEnglish = await listen(OTHER_VOICE);
    expect(Math.abs(Math.log2(inFrench.pitchHz / inEnglish.pitchHz)) * 12).toBeLessThan(4);
  });

  it("read the same text in another language with language_code", async () => {
    measures("POST /v1/text-to-speech/{voice_id}", "language_code", "the sound of the same text");
    const soundOf = async (language_code: string) => {
      const body = { text: "Alle hier", seed: 1, language_code };
      const answer = await client.post(`/v1/text-to-speech/${VOICE}?output_format=pcm_16000`, body);
      expect(answer.status).toBe(200);
      return answer.body;
    };
    const english = await soundOf("en");
    expect((await soundOf("en")).equals(english)).toBe(true);
    expect((await soundOf("de")).equals(english)).toBe(false);
  });

  it("speak with the accent of a region that language_code names, and refuse others", async () => {
    const answerTo = (language_code: string, voice: string, modelId = "eleven_multilingual_v2") =>
      client.post(`/v1/text-to-speech/${voice}?output_format=pcm_16000`, {
        ...{ text: "O bom dia", seed: 1, language_code, model_id: modelId },
      });
    const sounds = new Set<string>();
    for (const code of ["pt-PT", "pt-BR", "en", "en-US", "en-GB"]) {
      const { status, body } = await answerTo(code, GILES);
      expect([code, status]).toEqual([code, 200]);
      sounds.add(body.toString("base64"));
    }
    expect(sounds.size).toBe(5);
    for (const code of ["zh-HK", "nn", "de-AT", "fil"]) {
      const { status, body } = await answerTo(code, VOICE);
      expect([code, status]).toEqual([code, 400]);
      expect(JSON.parse(body.toString()).detail).toMatchObject({
        status: "unsupported_language",
        param: "language_code",
      });
    }
  });

  it("speak English alone with a model that has no other language, and are listed so", async () => {
    const say = async (model_id: string, language_code?: string) => {
      const body = { text: "Alle hier", seed: 1, model_id, language_code };
      return (await client.post(`/v1/text-to-speech/${JUERGEN}?output_format=pcm_16000`, body)).body;
    };
    const english = await say("eleven_multilingual_v2", "en");
    expect((await say("eleven_multilingual_v2")).equals(english)).toBe(false);
    for (const model of ["eleven_flash_v2", "eleven_turbo_v2", "eleven_monolingual_v1"]) {
      expect((await say(model)).equals(english)).toBe(true);
    }
    const modelsOf = async (voice: string) => {
      const record = await get<{
        verified_languages: { language: string; model_id: string }[];
        high_quality_base_model_ids: string[];
      }>(`/v1/voices/${voice}`);
      const verified = record.verified_languages.map((one) => one.model_id);
      expect(record.high_quality_base_model_ids).toEqual(verified);
      return verified;
    };
    expect(await modelsOf(VOICE)).toContain("eleven_flash_v2");
    expect(await modelsOf(JUERGEN)).toContain("eleven_flash_v2_5");
    expect(await modelsOf(JUERGEN)).not.toContain("eleven_flash_v2");
    expect(await modelsOf(JUERGEN)).not.toContain("eleven_monolingual_v1");
  });

  it("are faster and slower with voice_settings.speed", async () => {
    const seconds = async (speed: number) =>
      (await listen(VOICE, { text: SENTENCE, voice_settings: { speed } })).seconds;
    const normal = await seconds(1);
    expect((await seconds(0.7)) / normal).toBeCloseTo(1.43, 1);
    expect((await seconds(1.2)) / normal).toBeCloseTo(0.83, 1);
  });

  it("move their pitch more with little stability", async () => {
    const spread = async (stability: number) =>
      (await listen(VOICE, { text: SENTENCE, seed: 1, voice_settings: { stability } })).pitchSpread;
    expect(await spread(0)).toBeGreaterThan((await spread(1)) * 1.2);
  });
});

const RATE = 16_000;

/** Pitch by autocorrelation, brightness by zero crossings: crude, and ours alone. */
async function listen(voiceId: string, body: object = { text: SENTENCE }) {
  const answer = await client.post(`/v1/text-to-speech/${voiceId}?output_format=pcm_16000`, body);
  expect(answer.status).toBe(200);
  const samples = new Int16Array(
    answer.body.buffer.slice(answer.body.byteOffset, answer.body.byteOffset + answer.body.length),
  );
  const pitches: number[] = [];
  for (let from = 0; from + 1024 < samples.length; from += 400) {
    const pitch = pitchOf(samples.subarray(from, from + 1024));
    if (pitch !== null) pitches.push(pitch);
  }
  pitches.sort((a, b) => a - b);
  const at = (part: number) => pitches[Math.floor(pitches.length * part)] ?? 0;
  let crossings = 0;
  for (let index = 1; index < samples.length; index++) {
    if ((samples[index] ?? 0) < 0 !== (samples[index - 1] ?? 0) < 0) crossings++;
  }
  return {
    seconds: samples.length / RATE,
    pitchHz: at(0.5),
    pitchSpread: at(0.9) / Math.max(1, at(0.1)),
    crossings: crossings / samples.length,
  };
}

function pitchOf(window: Int16Array): number | null {
  const length = 512;
  const energy = (from: number) => {
    let sum = 0;
    for (let index = from; index < from + length; index++) sum += (window[index] ?? 0) ** 2;
    return sum;
  };
  const own = energy(0);
  if (own / length < 1_000_000) return null;
  let best = { score: 0.5, lag: 0 };
  for (let lag = 40; lag < 260; lag++) {
    let product = 0;
    for (let index = 0; index < length; index++) product += (window[index] ?? 0) * (window[index + lag] ?? 0);
    const score = product / Math.sqrt(own * energy(lag) + 1);
    if (score > best.score + 0.03) best = { score, lag };
  }
  return best.lag === 0 ? null : RATE / best.lag;
}

/** The account's sections on a server and a store of their own. */
import { afterEach, describe, expect, it } from "vitest";
import { registerTokens } from "../../src/service/http/account/tokens.ts";
import { registerUser } from "../../src/service/http/account/user.ts";
import { SingleUseTokens } from "../../src/service/http/single-use-tokens.ts";
import { TIERS, type Tier } from "../../src/service/http/tiers.ts";
import { registerVoiceSamples } from "../../src/service/http/voices/voice-samples.ts";
import { registerVoiceSettings } from "../../src/service/http/voices/voice-settings.ts";
import type { Store } from "../../src/service/store/store.ts";
import { measures } from "../helpers/measures.ts";
import { VOICE } from "./client.ts";
import { mount } from "./mounted.ts";

const KEY = "the-only-key";
const FIFTEEN_MINUTES_MS = 900_000;

interface Account {
  readonly store: Store;
  get(path: string, key?: string): Promise<{ readonly status: number; readonly body: unknown }>;
  post(path: string, key?: string): Promise<{ readonly status: number; readonly body: unknown }>;
  /** A voice from a file that is no audio. */
  addVoice(): Promise<{ readonly status: number; readonly body: unknown }>;
}

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one[Symbol.asyncDispose]();
});

async function startAccount(options: { readonly tier?: Tier; readonly key?: string } = {}): Promise<Account> {
  const mounted = await mount(options, (section, context) => {
    registerUser(section, context);
    registerVoiceSettings(section, context);
    registerVoiceSamples(section, context);
    registerTokens(section, context);
  });
  opened.push(mounted);
  const send = async (method: string, path: string, given: string | undefined, body?: FormData) => {
    const headers = given === undefined ? {} : { "xi-api-key": given };
    const answer = await fetch(mounted.url + path, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    });
    return { status: answer.status, body: (await answer.json()) as unknown };
  };
  return {
    store: mounted.store,
    get: (path, given) => send("GET", path, given),
    post: (path, given) => send("POST", path, given),
    addVoice: () => {
      const form = new FormData();
      form.set("name", "Mine");
      form.set("files", new Blob(["no audio"]), "mine.wav");
      return send("POST", "/v1/voices/add", undefined, form);
    },
  };
}

function tokenOf({ status, body }: { readonly status: number; readonly body: unknown }): string {
  expect(status).toBe(200);
  return (body as { token: string }).token;
}

describe("GET /v1/user/subscription", () => {
  it("has every required field, with what was used", async () => {
    const { get, store } = await startAccount({ tier: "creator" });
    store.history.charge(123);
    store.history.charge(7);
    store.voices.add({ name: "Mine", description: null, labels: {}, sound: {}, createdAtUnix: 1 }, []);
    const { status, body } = await get("/v1/user/subscription");
    expect(status).toBe(200);
    expect(body).toMatchObject({
      tier: "creator",
      character_count: 130,
      character_limit: 100_000,
      max_credit_limit_extension: "unlimited",
      can_extend_character_limit: true,
      allowed_to_extend_character_limit: true,
      voice_slots_used: 1,
      professional_voice_slots_used: 0,
      professional_voice_slots_used_in_workspace: 0,
      voice_limit: 30,
      voice_add_edit_counter: 1,
      professional_voice_limit: 0,
      can_extend_voice_limit: false,
      can_use_instant_voice_cloning: true,
      can_use_professional_voice_cloning: false,
      current_overage: { amount: "0", currency: "usd" },
      status: "active",
      open_invoices: [],
      has_open_invoices: false,
    });
  });

  it("grows with the plan, and marks the free one", async () => {
    const limits: number[] = [];
    for (const tier of TIERS) {
      const { get } = await startAccount({ tier });
      const { body } = await get("/v1/user/subscription");
      const record = body as { tier: string; status: string; character_limit: number };
      expect(record).toMatchObject({ tier, status: tier === "free" ? "free" : "active" });
      limits.push(record.character_limit);
      if (tier !== "free") continue;
      expect(body).toMatchObject({
        max_credit_limit_extension: 0,
        can_extend_character_limit: false,
        can_use_instant_voice_cloning: false,
        can_use_professional_voice_cloning: false,
        billing_period: null,
      });
    }
    expect(limits).toEqual([...new Set(limits)].toSorted((a, b) => a - b));
    expect(limits.slice(0, 6)).toEqual([10_000, 30_000, 100_000, 500_000, 2_000_000, 11_000_000]);
  });
});

describe.each(TIERS)("the voices of tier %s", (tier) => {
  it("are those that the account says: cloning where it is part of the plan, up to its limit", async () => {
    const { addVoice, get, store } = await startAccount({ tier });
    const { subscription } = (await get("/v1/user")).body as {
      readonly subscription: {
        readonly can_use_instant_voice_cloning: boolean;
        readonly can_use_professional_voice_cloning: boolean;
        readonly professional_voice_limit: number;
        readonly voice_limit: number;
      };
    };
    // Nothing makes professional voices.
    expect(subscription.can_use_professional_voice_cloning).toBe(false);
    expect(subscription.professional_voice_limit).toBe(0);
    if (!subscription.can_use_instant_voice_cloning) {
      expect(await addVoice()).toMatchObject({
        status: 403,
        body: {
          detail: {
            type: "authorization_error",
            code: "subscription_required",
            status: "can_not_use_instant_voice_cloning",
          },
        },
      });
      return;
    }
    const limit = subscription.voice_limit;
    const voice = { name: "Mine", description: null, labels: {}, sound: {}, createdAtUnix: 1 };
    for (let count = 1; count < limit; count += 1) store.voices.add(voice, []);
    expect(await addVoice()).toMatchObject({
      status: 400,
      body: { detail: { code: "invalid_audio_format" } },
    });
    store.voices.add(voice, []);
    const message = `You have reached your maximum amount of custom voices (${limit} / ${limit}).`;
    expect(await addVoice()).toMatchObject({
      status: 400,
      body: { detail: { code: "voice_limit_reached", message } },
    });
  });
});

describe("GET /v1/user", () => {
  it("has the shorter subscription, and ids that stay and don't give the key away", async () => {
    const { get } = await startAccount({ key: KEY });
    const { body } = await get("/v1/user", KEY);
    const user = body as { user_id: string; workspace_id: string; subscription: object };
    expect(user).toMatchObject({
      is_new_user: false,
      can_use_delayed_payment_methods: false,
      is_onboarding_completed: true,
      is_onboarding_checklist_completed: true,
      created_at: 0,
      seat_type: "workspace_admin",
      subscription: { tier: "enterprise", character_count: 0 },
    });
    for (const field of ["next_invoice", "open_invoices", "has_open_invoices", "pending_change"]) {
      expect(user.subscription).not.toHaveProperty(field);
    }
    expect(user.user_id).toMatch(/^[0-9a-f]{28}$/);
    expect(user.workspace_id).toMatch(/^[0-9a-f]{28}$/);
    expect(user.workspace_id).not.toBe(user.user_id);
    expect((await get("/v1/user", KEY)).body).toEqual(body);
    expect(JSON.stringify(body)).not.toContain(KEY);
    const other = await (await startAccount({ key: "another-key" })).get("/v1/user", "another-key");
    expect((other.body as { user_id: string }).user_id).not.toBe(user.user_id);
  });
});

describe("voice settings", () => {
  const defaults = { stability: 0.5, similarity_boost: 0.75, style: 0, use_speaker_boost: true, speed: 1 };

  it("are the defaults, for every voice that there is", async () => {
    const { get, store } = await startAccount();
    const { id } = store.voices.add(
      { name: "Mine", description: null, labels: {}, sound: {}, createdAtUnix: 1 },
      [],
    );
    for (const path of [
      `/v1/voices/settings/default`,
      `/v1/voices/${VOICE}/settings`,
      `/v1/voices/${id}/settings`,
    ]) {
      expect(await get(path)).toEqual({ status: 200, body: defaults });
    }
  });

  it("settings of a voice that is not there are not found", async () => {
    measures("GET /v1/voices/{voice_id}/settings", "voice_id", "404 where no voice has it");
    const { get } = await startAccount();
    expect(await get("/v1/voices/nobody/settings")).toMatchObject({
      status: 404,
      body: { detail: { type: "not_found", code: "voice_not_found", param: "voice_id" } },
    });
  });
});

describe("POST /v1/single-use-token", () => {
  it("gives another token each time, for speech alone: there is no transcription", async () => {
    measures("POST /v1/single-use-token/{token_type}", "token_type", "a token, or 403 for transcription");
    const { post } = await startAccount();
    const seen = new Set<string>();
    for (let count = 0; count < 4; count++) {
      const token = tokenOf(await post("/v1/single-use-token/tts_websocket"));
      expect(token).toMatch(/^sutkn_[0-9a-f]{48}$/);
      seen.add(token);
    }
    expect(seen.size).toBe(4);
    for (const type of ["realtime_scribe", "batch_scribe"]) {
      expect(await post(`/v1/single-use-token/${type}`)).toMatchObject({
        status: 403,
        body: {
          detail: { type: "authorization_error", code: "feature_not_available", param: "token_type" },
        },
      });
    }
  });

  it("refuses other types in pydantic's words, before the key is looked at", async () => {
    const { post } = await startAccount({ key: KEY });
    const expected = "'realtime_scribe', 'batch_scribe' or 'tts_websocket'";
    for (const type of ["sts_websocket", "constructor", "TTS_WEBSOCKET"]) {
      expect(await post(`/v1/single-use-token/${type}`)).toMatchObject({
        status: 422,
        body: {
          detail: [{ loc: ["path", "token_type"], msg: `Input should be ${expected}`, input: type }],
        },
      });
    }
  });

  it("lets a token live for fifteen minutes, and be used once", () => {
    let nowMs = 5000;
    const tokens = new SingleUseTokens({ nowMs: () => nowMs });
    const early = tokens.issue();
    const late = tokens.issue();
    nowMs += FIFTEEN_MINUTES_MS - 1;
    expect(tokens.consume(early)).toBe(true);
    expect(tokens.consume(early)).toBe(false);
    nowMs += 1;
    expect(tokens.consume(late)).toBe(false);
    expect(tokens.consume("sutkn_made_up")).toBe(false);
  });

  it("keeps ten thousand alive and forgets the oldest", () => {
    const tokens = new SingleUseTokens({ nowMs: () => 0 });
    const made = Array.from({ length: 10_001 }, () => tokens.issue());
    expect(tokens.consume(made[0] ?? "")).toBe(false);
    expect(tokens.consume(made[1] ?? "")).toBe(true);
    expect(tokens.consume(made[10_000] ?? "")).toBe(true);
  });
});

describe("the key", () => {
  it("is asked for by each of them", async () => {
    const { get, post } = await startAccount({ key: KEY });
    const reads = [
      "/v1/user",
      "/v1/user/subscription",
      "/v1/voices/settings/default",
      `/v1/voices/${VOICE}/settings`,
      "/v1/voices/nobody/settings",
    ];
    for (const path of reads) {
      expect(await get(path)).toMatchObject({
        status: 401,
        body: { detail: { status: "needs_authorization" } },
      });
      expect(await get(path, "wrong")).toMatchObject({
        status: 401,
        body: { detail: { status: "invalid_api_key" } },
      });
    }
    expect((await get("/v1/user", KEY)).status).toBe(200);
    expect((await post("/v1/single-use-token/tts_websocket", "wrong")).status).toBe(401);
    tokenOf(await post("/v1/single-use-token/tts_websocket", KEY));
  });
});

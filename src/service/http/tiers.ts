/** What a subscription plan allows: output formats, added voices and concurrent requests. */
import { type Release, Semaphore } from "../../kit/semaphore.ts";
import { ApiError } from "../api-error.ts";

export const TIERS = ["free", "starter", "creator", "pro", "scale", "business", "enterprise"] as const;
export type Tier = (typeof TIERS)[number];

/** The tier of that name; undefined where there is none. */
export function findTier(name: string): Tier | undefined {
  return TIERS.find((tier) => tier === name);
}

interface Plan {
  /** Characters a month. They are shown, and nothing is refused for being over them. */
  readonly characters: number;
  /** Added voices at most. */
  readonly voices: number;
  /** Whether recordings may become a voice. */
  readonly hasVoiceCloning: boolean;
}

/** Like the vendor's public numbers, as far as they are known; the enterprise's are ours. */
export const PLANS: Readonly<Record<Tier, Plan>> = {
  free: { characters: 10_000, voices: 3, hasVoiceCloning: false },
  starter: { characters: 30_000, voices: 10, hasVoiceCloning: true },
  creator: { characters: 100_000, voices: 30, hasVoiceCloning: true },
  pro: { characters: 500_000, voices: 160, hasVoiceCloning: true },
  scale: { characters: 2_000_000, voices: 660, hasVoiceCloning: true },
  business: { characters: 11_000_000, voices: 660, hasVoiceCloning: true },
  enterprise: { characters: 1_000_000_000, voices: 660, hasVoiceCloning: true },
};

/** [standard models, flash and turbo models]; null = as many as come. */
const CONCURRENCY: Readonly<Record<Tier, readonly [number, number] | null>> = {
  free: [2, 4],
  starter: [3, 6],
  creator: [5, 10],
  pro: [10, 20],
  scale: [15, 30],
  business: [15, 30],
  enterprise: null,
};
/** What the header says where there is no limit. */
const UNLIMITED = 1000;

/** Throws the 403 of a format above the plan. */
export function requireFormatAllowed(format: string, tier: Tier): void {
  const needed = /^mp3_44100_192$/.test(format)
    ? "creator"
    : /^(?:pcm|wav)_44100$/.test(format)
      ? "pro"
      : "free";
  if (TIERS.indexOf(tier) >= TIERS.indexOf(needed)) return;
  const plan = needed === "pro" ? "Pro" : "Creator";
  throw ApiError.of({
    type: "authorization_error",
    code: "subscription_required",
    status: "output_format_not_allowed",
    message: `The output_format '${format}' is only allowed on the ${plan} tier and above.`,
    param: "output_format",
  });
}

/** Throws the 403 of a plan without voices from recordings, and the 400 of one that has as many voices as it may. */
export function requireVoiceSlot(tier: Tier, usedVoices: number): void {
  const { voices, hasVoiceCloning } = PLANS[tier];
  if (!hasVoiceCloning) {
    throw ApiError.of({
      type: "authorization_error",
      code: "subscription_required",
      status: "can_not_use_instant_voice_cloning",
      message: `Voices from recordings are not part of the ${tier} tier, they are of all others.`,
    });
  }
  if (usedVoices < voices) return;
  const message = `You have reached your maximum amount of custom voices (${usedVoices} / ${voices}).`;
  throw ApiError.unfit("voice_limit_reached", message);
}

/** 403: only for enterprise customers. */
export function enterpriseOnly(message: string, param: string): ApiError {
  return ApiError.of({ type: "authorization_error", code: "feature_not_available", message, param });
}

/** Throws the 403 of zero retention below the plan that has it. */
export function requireLoggable(isLogged: boolean, tier: Tier): void {
  if (isLogged || tier === "enterprise") return;
  const message = "Zero retention mode (enable_logging=false) is only available to enterprise customers.";
  throw enterpriseOnly(message, "enable_logging");
}

export interface Admission {
  /** Requests under way in the same group, this one included. */
  readonly current: number;
  readonly maximum: number;
  readonly release: Release;
}

/** As live answers have them. */
export function concurrencyHeaders({ current, maximum }: Admission): Readonly<Record<string, string>> {
  return {
    "current-concurrent-requests": String(current),
    "maximum-concurrent-requests": String(maximum),
  };
}

/** Counts requests under way by concurrency group and refuses those over the plan. */
export class ConcurrencyGate {
  readonly #groups: Readonly<Record<"standard" | "turbo", { permits: Semaphore; maximum: number }>>;

  constructor(tier: Tier) {
    const [standard, turbo] = CONCURRENCY[tier] ?? [Infinity, Infinity];
    this.#groups = { standard: groupOf(standard), turbo: groupOf(turbo) };
  }

  /** Throws the 429 of too many concurrent requests. */
  enter(group: "standard" | "turbo"): Admission {
    const { permits, maximum } = this.#groups[group];
    const release = permits.tryAcquire();
    if (release !== null) return { current: permits.held, maximum, release };
    throw ApiError.of({
      type: "rate_limit_error",
      code: "concurrent_limit_exceeded",
      status: "too_many_concurrent_requests",
      message: `Too many concurrent requests. Your current subscription allows a maximum of ${maximum} of them.`,
    });
  }
}

function groupOf(limit: number) {
  return { permits: new Semaphore({ limit }), maximum: limit === Infinity ? UNLIMITED : limit };
}

/**
 * Section "User": whose account is played, its plan and what it has used. The limit of characters informs: nothing is
 * refused for being over it, and the counter is never set back.
 */
import { createHash } from "node:crypto";
import type { FastifyInstance } from "fastify";
import type { ServiceContext } from "../context.ts";
import { route } from "../operation.ts";
import { PLANS, TIERS, type Tier } from "../tiers.ts";
import { SUBSCRIPTION, USER } from "./account-operations.ts";

/** From this plan on, what is over the limit is billed by use. */
const FIRST_WITH_OVERAGE: Tier = "creator";
const ID_LENGTH = 28;

/** GET /v1/user/subscription and GET /v1/user; 401 (or 400 for a key of the current shape) without the right key. */
export function registerUser(app: FastifyInstance, context: ServiceContext): void {
  route(app, context, SUBSCRIPTION, async () => ({
    ...subscriptionRecord(context),
    next_invoice: null,
    open_invoices: [],
    has_open_invoices: false,
    pending_change: null,
  }));
  route(app, context, USER, async () => userRecord(context));
}

function userRecord(context: ServiceContext): object {
  return {
    user_id: accountId("user", context.key),
    workspace_id: accountId("workspace", context.key),
    subscription: subscriptionRecord(context),
    is_new_user: false,
    can_use_delayed_payment_methods: false,
    is_onboarding_completed: true,
    is_onboarding_checklist_completed: true,
    show_compliance_terms: false,
    first_name: null,
    is_api_key_hashed: false,
    xi_api_key_preview: null,
    referral_link_code: null,
    partnerstack_partner_default_link: null,
    // The interface's own word for "not known".
    created_at: 0,
    seat_type: "workspace_admin",
  };
}

/** What both answers have. */
function subscriptionRecord({ tier, store }: ServiceContext): object {
  const plan = PLANS[tier];
  const isFree = tier === "free";
  const hasOverage = TIERS.indexOf(tier) >= TIERS.indexOf(FIRST_WITH_OVERAGE);
  const addedVoices = store.voices.list().length;
  return {
    tier,
    character_count: store.history.charactersUsed,
    character_limit: plan.characters,
    max_character_limit_extension: hasOverage ? null : 0,
    max_credit_limit_extension: hasOverage ? "unlimited" : 0,
    can_extend_character_limit: hasOverage,
    allowed_to_extend_character_limit: hasOverage,
    next_character_count_reset_unix: null,
    voice_slots_used: addedVoices,
    professional_voice_slots_used: 0,
    professional_voice_slots_used_in_workspace: 0,
    voice_limit: plan.voices,
    max_voice_add_edits: null,
    voice_add_edit_counter: addedVoices,
    // There is no endpoint that makes professional voices.
    professional_voice_limit: 0,
    can_extend_voice_limit: false,
    can_use_instant_voice_cloning: plan.hasVoiceCloning,
    can_use_professional_voice_cloning: false,
    currency: "usd",
    current_overage: { amount: "0", currency: "usd" },
    status: isFree ? "free" : "active",
    billing_period: isFree ? null : "monthly_period",
    character_refresh_period: null,
  };
}

/** The same for the same key, and says nothing of that; letters and digits as the vendor's. */
export function accountId(kind: "user" | "workspace", key: string | undefined): string {
  const digest = createHash("sha256").update(`voicewire ${kind} ${key ?? ""}`);
  return digest.digest("hex").slice(0, ID_LENGTH);
}

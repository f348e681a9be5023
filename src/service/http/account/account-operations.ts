/** What the account's endpoints answer with. */
import { json } from "../answers.ts";
import { BOOLEAN, INTEGER, listOf, NULL, nullable, oneOf, record, STRING } from "../json-schema.ts";
import { operation } from "../operation.ts";
import { TIERS } from "../tiers.ts";

const COMMON = {
  tier: oneOf(TIERS),
  character_count: { ...INTEGER, description: "Characters billed; never set back." },
  character_limit: { ...INTEGER, description: "Nothing is refused for being over it." },
  max_character_limit_extension: nullable(INTEGER),
  max_credit_limit_extension: { anyOf: [INTEGER, { ...STRING, const: "unlimited" }] },
  can_extend_character_limit: BOOLEAN,
  allowed_to_extend_character_limit: BOOLEAN,
  next_character_count_reset_unix: NULL,
  voice_slots_used: INTEGER,
  professional_voice_slots_used: INTEGER,
  professional_voice_slots_used_in_workspace: INTEGER,
  voice_limit: { ...INTEGER, description: "Added voices at most; over it 400 voice_limit_reached." },
  max_voice_add_edits: NULL,
  voice_add_edit_counter: INTEGER,
  professional_voice_limit: { ...INTEGER, const: 0 },
  can_extend_voice_limit: BOOLEAN,
  can_use_instant_voice_cloning: { ...BOOLEAN, description: "Whether POST /v1/voices/add is allowed." },
  can_use_professional_voice_cloning: { ...BOOLEAN, const: false },
  currency: STRING,
  current_overage: record({ amount: STRING, currency: STRING }),
  status: oneOf(["free", "active"]),
  billing_period: nullable(STRING),
  character_refresh_period: NULL,
} as const;

export const SUBSCRIPTION = operation({
  method: "GET",
  url: "/v1/user/subscription",
  id: "get_user_subscription_info",
  tag: "Models and account",
  summary: "The plan that is played, and what was used; characters over the limit are spoken",
  answer: json(
    record({
      ...COMMON,
      next_invoice: NULL,
      open_invoices: listOf({}),
      has_open_invoices: BOOLEAN,
      pending_change: NULL,
    }),
    "The subscription.",
  ),
});

export const USER = operation({
  method: "GET",
  url: "/v1/user",
  id: "get_user_info",
  tag: "Models and account",
  summary: "Whose account is played",
  answer: json(
    record({
      user_id: STRING,
      workspace_id: STRING,
      subscription: record(COMMON),
      is_new_user: BOOLEAN,
      can_use_delayed_payment_methods: BOOLEAN,
      is_onboarding_completed: BOOLEAN,
      is_onboarding_checklist_completed: BOOLEAN,
      show_compliance_terms: BOOLEAN,
      first_name: NULL,
      is_api_key_hashed: BOOLEAN,
      xi_api_key_preview: NULL,
      referral_link_code: NULL,
      partnerstack_partner_default_link: NULL,
      created_at: INTEGER,
      seat_type: STRING,
    }),
    "The user.",
  ),
});

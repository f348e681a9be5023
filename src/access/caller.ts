/** Who asks, and what they may do: a key, or a token that a key signed or minted. Where no keys are set: anybody, everything. */
import { forbidden } from "./access-error.ts";
import {
  type Action,
  type ConnectionSettings,
  DEFAULT_PARTS,
  type Grants,
  isListed,
  type SpeechSettings,
} from "./grants.ts";
import type { Key } from "./keys.ts";
import { type Layer, lacksAction, lacksOne } from "./missing-grant.ts";

/** What a token says beside its grants. Times in milliseconds since 1970. */
export interface Token {
  /** `jti`, or a digest of the token where it has none. */
  readonly id: string;
  readonly subject: string;
  readonly grants: Grants;
  /** Whose signature it has: not the caller's key where the gateway minted it for that one. */
  readonly signer: Key;
  readonly issuedMs: number;
  /** From then on it opens nothing more. */
  readonly expiresMs: number;
}

interface Speech {
  readonly voiceIds: readonly string[];
  readonly modelId?: string | undefined;
  readonly priority?: number | undefined;
}

export class Caller {
  readonly key: Key | null;
  readonly token: Token | null;
  readonly #layers: readonly Layer[];

  constructor(key: Key | null, token: Token | null = null) {
    this.key = key;
    this.token = token;
    this.#layers = layersOf(key, token);
  }

  /** No keys are set: whoever reaches the port may do everything. */
  get isAnybody(): boolean {
    return this.key === null;
  }
  /** As the audit log names them. */
  get subject(): string {
    return this.token?.subject ?? this.key?.id ?? "anybody";
  }
  /** A key of one tenant makes no tokens of another, whatever they say. */
  get tenant(): string {
    const ofKey = this.key?.tenant || this.key?.grants.tenant;
    return ofKey || (this.token?.grants.tenant ?? "");
  }
  /** A subject is the same one for all keys of a tenant: its tokens come from two while keys are rotated. */
  get identity(): string {
    if (this.isAnybody) return "";
    if (this.token === null) return `key ${this.subject}`;
    return `subject ${this.key?.tenant ?? ""} ${this.tenant} ${this.subject}`;
  }
  get isSingleUse(): boolean {
    return this.token?.grants.once === true;
  }

  /** `sessionId`: null where it is about no session. */
  may(action: Action, sessionId: string | null = null): boolean {
    return this.#layers.every(
      ({ grants: { allow, sessions } }) =>
        allow.includes(action) && (sessionId === null || isListed(sessions, sessionId)),
    );
  }

  mayAny(actions: readonly Action[], sessionId: string | null = null): boolean {
    return actions.some((action) => this.may(action, sessionId));
  }

  /** Throws forbidden. */
  must(action: Action, sessionId: string | null = null): void {
    if (!this.may(action, sessionId)) throw lacksAction(this.#layers, [action], sessionId);
  }

  /** Throws forbidden unless one of them is allowed. */
  mustAny(actions: readonly Action[], sessionId: string | null = null): void {
    if (!this.mayAny(actions, sessionId)) throw lacksAction(this.#layers, actions, sessionId);
  }

  /** In which sessions, by each of what has to allow it: a name has to be in all of these lists. Empty: in any. */
  get sessionLists(): readonly (readonly string[])[] {
    return this.#layers.map(({ grants }) => grants.sessions);
  }

  mayUseVoice(voiceId: string): boolean {
    return this.#layers.every(({ grants }) => isListed(grants.voices, voiceId));
  }

  /** Throws forbidden. */
  mustUse({ voiceIds, modelId, priority = 0 }: Speech): void {
    for (const layer of this.#layers) {
      const { voices, models, priority_max = 0 } = layer.grants;
      if (!voiceIds.every((id) => isListed(voices, id))) throw lacksOne(layer, "this voice", voices);
      if (modelId !== undefined && !isListed(models, modelId)) throw lacksOne(layer, "this model", models);
      if (priority > priority_max) {
        throw forbidden(`${layer.owner} allows priorities up to ${priority_max}`);
      }
    }
  }

  /** Whether a listener may have its audio in this format. Throws forbidden. */
  mustHear(format: string): void {
    for (const layer of this.#layers) {
      const { formats } = layer.grants;
      if (!isListed(formats, format)) throw lacksOne(layer, "this format", formats);
    }
  }

  /** Win over the client's; those of the key over those of the token. */
  get connectionSettings(): ConnectionSettings {
    return { ...this.token?.grants.connection, ...this.key?.grants.connection };
  }
  get speechSettings(): SpeechSettings {
    return { ...this.token?.grants.speech, ...this.key?.grants.speech };
  }

  /** The smallest number that a layer names; null: none does. */
  bound(
    name:
      | "characters"
      | "seconds"
      | "session_until"
      | "connections"
      | "characters_per_minute"
      | "utterances_per_minute",
  ) {
    let smallest: number | null = null;
    for (const { grants } of this.#layers) {
      const value = grants[name];
      if (value !== undefined && (smallest === null || value < smallest)) smallest = value;
    }
    return smallest;
  }

  /** Throws forbidden unless each layer names this part of the vendor's interface. */
  mustPass(part: string): void {
    this.must("proxy");
    for (const layer of this.#layers) {
      const { proxy = DEFAULT_PARTS } = layer.grants;
      if (!isListed(proxy, part))
        throw lacksOne(layer, `the part ${part} of the upstream's interface`, proxy);
    }
  }

  /** Whether the caller's rights restrict or set any of these. */
  limits(...names: readonly ("voices" | "models" | "formats" | "speech")[]): boolean {
    return this.#layers.some(({ grants }) => names.some((name) => grants[name] !== undefined));
  }

  /** Whether a page of this origin may use the token. No page: an empty text, which any token allows. */
  mayComeFrom(origin: string): boolean {
    if (origin === "") return true;
    return this.#layers.every(
      ({ grants: { origin: allowed } }) => allowed === undefined || allowed.includes(origin),
    );
  }
}

/** Where no keys are set. */
export const ANYBODY = new Caller(null);

function layersOf(key: Key | null, token: Token | null): readonly Layer[] {
  if (key === null) return [];
  if (token === null) return [{ owner: "Your key", grants: key.grants }];
  return [
    { owner: "Your token", grants: token.grants },
    { owner: "The key of your token", grants: key.grants },
  ];
}

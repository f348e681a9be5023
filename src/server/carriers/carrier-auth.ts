/**
 * Whom calls are taken from. A carrier has a check of its own where one is set up: Twilio its signature, each of them a token.
 * Who passes it may bring calls into any session. The others show a key or a token of the gateway that allows `call`. Where
 * the gateway has no keys, one check denies every carrier that has none; without any, everybody may bring calls.
 */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { createHash, timingSafeEqual } from "node:crypto";
import { ANYBODY, type Caller } from "../../access/caller.ts";
import { type Door, identifyAt } from "../../access/door.ts";
import type { Action } from "../../access/grants.ts";
import type { OpusAccount } from "../../access/limits/limits.ts";
import { GatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import { CARRIERS, type CallVia } from "../../protocol/carrier/carrier.ts";
import { isTwilioSignature } from "../../protocol/carrier/twilio-signature.ts";
import type { SpeakCommand } from "../../protocol/commands.ts";
import type { Payer } from "../../session/payer.ts";
import type { CallEnding, CallRights, CallStarting } from "../../telephony/call.ts";
import { presentedByCarrier } from "../credential.ts";
import { requestAddress } from "../request-address.ts";
import { redeemFor } from "../routes.ts";
import { CallerRights } from "./caller-rights.ts";
import type { CarrierRules } from "./carrier-rules.ts";
import { SignedCalls } from "./signed-calls.ts";

/** A carrier's request to connect. */
export interface CarrierRequest {
  /** null where the carrier is found out later, or is none that is known here. */
  readonly carrier: CallVia | null;
  readonly path: string;
  /** The query of the URL, still encoded, without the question mark. */
  readonly query: string;
  readonly headers: ReadonlyMap<string, string>;
  /** Where the client calls from. */
  readonly address: string;
  /** Uses a single-use token up, unless the request is refused later. Throws AccessError, rate_limited. */
  readonly redeem: (caller: Caller) => void;
}

export interface CarrierAuthOptions {
  readonly rules: CarrierRules;
  readonly door: Door;
  readonly clock: Pick<Clock, "nowMs">;
}

export class CarrierAuth {
  readonly #rules: CarrierRules;
  readonly #door: Door;
  readonly #signedCalls: SignedCalls;

  constructor({ rules, door, clock }: CarrierAuthOptions) {
    this.#rules = rules;
    this.#door = door;
    this.#signedCalls = new SignedCalls(clock);
  }

  /** Only before the request's handler returns. */
  requestOf(res: HttpResponse, req: HttpRequest, carrier: CallVia | null): CarrierRequest {
    const headers = new Map<string, string>();
    req.forEach((name, value) => {
      headers.set(name, value);
    });
    const address = requestAddress(res, req, this.#door.proxyTrust);
    const redeem = (caller: Caller): void => redeemFor(res, caller, this.#door);
    return { carrier, path: req.getUrl(), query: req.getQuery() ?? "", headers, address, redeem };
  }

  /**
   * `also`: what a key or a token has to allow beside `call`. Throws carrier_signature, carrier_unauthorized, forbidden, and
   * what the door throws for keys and tokens.
   */
  admit(request: CarrierRequest, ...also: Action[]): Admission {
    try {
      return this.#admit(request, also);
    } catch (thrown) {
      this.#door.audit.refused({ thrown, ...this.#placeOf(request), caller: null });
      throw thrown;
    }
  }

  /** Who sets up a call by an HTTP request: a key or token that allows `call`, or whoever passes the port's own check. */
  announcer(
    res: HttpResponse,
    req: HttpRequest,
    by: { readonly caller: Caller; readonly port: "rtp" | "audiosocket" },
  ) {
    const request = this.requestOf(res, req, by.port);
    if (by.caller.isAnybody || !this.#rules.served.has(by.port)) this.admit(request);
    return new CallerRights({ ...this.#placeOf(request), door: this.#door, caller: by.caller });
  }

  /** The same for a request that arrived at another node, and was let in there. */
  announcerAt(place: { readonly caller: Caller; readonly surface: string; readonly address: string }) {
    return new CallerRights({ ...place, door: this.#door });
  }

  /** Whether calls are taken that show nothing: no check could have denied them. */
  takesStrangers(port: "audiosocket"): boolean {
    return this.#door.access.isOpen && this.#rules.served.has(port) && !this.#hasChecks;
  }

  #admit(request: CarrierRequest, also: readonly Action[]): Admission {
    const named = request.carrier === null ? CARRIERS : [request.carrier];
    const asked = named.filter((carrier) => this.#rules.served.has(carrier));
    const passed = asked.filter((carrier) => this.#passesOwn(carrier, request));
    if (passed.length > 0) return this.#admission(passed, ANYBODY, request);
    const unchecked = asked.filter((carrier) => !this.#hasOwnCheck(carrier));
    if (unchecked.length === 0) throw this.#refusal(asked, request);
    const { access } = this.#door;
    if (!access.isOpen) {
      const caller = identifyAt(request.address, presentedByCarrier(request), this.#door);
      for (const action of ["call", ...also] as const) caller.must(action);
      request.redeem(caller);
      return this.#admission(unchecked, caller, request);
    }
    if (this.#hasChecks) throw this.#refusal(asked, request);
    return this.#admission(unchecked, ANYBODY, request);
  }

  #admission(carriers: readonly CallVia[], caller: Caller, request: CarrierRequest): Admission {
    const rights = new CallerRights({ ...this.#placeOf(request), door: this.#door, caller });
    const signature = request.headers.get("x-twilio-signature") ?? "";
    return new Admission({
      carriers: new Set(carriers),
      caller,
      rights,
      refusalOf: (carrier) => this.#refusal([carrier], request),
      isFirst: ({ carrier, callId }) =>
        carrier !== "twilio" || !this.#signs("twilio") || this.#signedCalls.add(signature, callId),
    });
  }

  get #hasChecks(): boolean {
    return this.#rules.twilioAuthToken !== "" || this.#rules.tokens.size > 0;
  }

  #signs(carrier: CallVia): boolean {
    return carrier === "twilio" && this.#rules.twilioAuthToken !== "";
  }

  #hasOwnCheck(carrier: CallVia): boolean {
    return this.#signs(carrier) || this.#rules.tokens.has(carrier);
  }

  #passesOwn(carrier: CallVia, request: CarrierRequest): boolean {
    if (this.#signs(carrier)) return this.#isSigned(request);
    const expected = this.#rules.tokens.get(carrier);
    return expected !== undefined && isSame(presentedByCarrier(request).credential, expected);
  }

  #isSigned({ path, query, headers }: CarrierRequest): boolean {
    const { twilioAuthToken: authToken, publicUrl } = this.#rules;
    const origin = publicUrl.replace(/^(?:wss?|https?):\/\//, "").replace(/(?<!\/)\/+$/, "");
    const url = `wss://${origin}${path}${query === "" ? "" : `?${query}`}`;
    return isTwilioSignature({ authToken, url, signature: headers.get("x-twilio-signature") ?? "" });
  }

  /** Why none of these may be brought. */
  #refusal(asked: readonly CallVia[], { headers }: CarrierRequest): GatewayError {
    const mustSign = asked.some((carrier) => this.#signs(carrier));
    const takesToken = asked.some((carrier) => !this.#signs(carrier) && this.#rules.tokens.has(carrier));
    if (mustSign && (!takesToken || headers.has("x-twilio-signature"))) return notSigned();
    if (takesToken) return noToken();
    return new GatewayError(
      "forbidden",
      "Calls of this carrier are not taken: carriers does not name it, or others have a check and it has none",
    );
  }

  #placeOf({ carrier, address }: CarrierRequest) {
    return { surface: carrier === null ? "/carrier" : `/carrier/${carrier}`, address };
  }
}

interface AdmissionOptions {
  /** Whose calls the request may bring. */
  readonly carriers: ReadonlySet<CallVia>;
  readonly caller: Caller;
  readonly rights: CallerRights;
  readonly refusalOf: (carrier: CallVia) => GatewayError;
  /** False where the same signature has brought the call before. */
  readonly isFirst: (call: CallStarting) => boolean;
}

/** A request that was let in, and what it may do. */
export class Admission implements CallRights {
  readonly #options: AdmissionOptions;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Anybody where a check of the carrier's own was passed, or the gateway has no keys. */
  get caller(): Caller {
    return this.#options.caller;
  }

  get opusAccount(): OpusAccount {
    return this.#options.rights.opusAccount;
  }

  get payer(): Payer {
    return this.#options.rights.payer;
  }

  /** Throws where this is none of the carriers that the request was let in for. */
  mustBe(carrier: CallVia): void {
    const { carriers, refusalOf, rights } = this.#options;
    if (carriers.has(carrier)) return;
    const refusal = refusalOf(carrier);
    rights.refused(refusal);
    throw refusal;
  }

  /** See CallerRights. */
  unlessRefused<T>(check: () => T): T {
    return this.#options.rights.unlessRefused(check);
  }

  begin(call: CallStarting, ending: CallEnding): () => void {
    const { rights, isFirst } = this.#options;
    try {
      if (!isFirst(call)) throw broughtTwice();
      return rights.begin(call, ending);
    } catch (thrown) {
      rights.refused(thrown);
      throw thrown;
    }
  }

  greeting(command: SpeakCommand, sessionId: string): SpeakCommand {
    return this.#options.rights.greeting(command, sessionId);
  }
}

function notSigned(): GatewayError {
  return new GatewayError(
    "carrier_signature",
    "Connection is not signed by Twilio for this URL: check twilio-auth-token and public-url",
  );
}

function broughtTwice(): GatewayError {
  return new GatewayError(
    "carrier_signature",
    "The same signature has brought this call within the last 10 minutes: a second stream of it needs another URL",
  );
}

function noToken(): GatewayError {
  return new GatewayError(
    "carrier_unauthorized",
    "Carrier shows no valid token: expected it as a bearer token, as basic password, or as token= in the URL",
  );
}

/** Takes the same time for any token: their digests are of one length. */
function isSame(token: string, expected: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(token), digest(expected));
}

/**
 * Tokens for clients that can't be trusted with a key: `POST /tokens`, and the vendor's own address for single-use tokens.
 * Only keys make them, never tokens.
 */
import type { HttpResponse } from "uWebSockets.js";
import type { MintedToken, MintRequest } from "../access/access.ts";
import { forbidden } from "../access/access-error.ts";
import type { Caller } from "../access/caller.ts";
import type { Door } from "../access/door.ts";
import type { Key } from "../access/keys.ts";
import { readMintRequest, vendorSocketToken } from "../access/mint-request.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import { accessRefusal } from "../protocol/elevenlabs/socket-faults.ts";
import { parseJson } from "../protocol/read-json.ts";
import { type Answer, pathPart, Reply, readBody } from "./http.ts";
import { requestAddress } from "./request-address.ts";
import type { Routes } from "./routes.ts";
import { VENDOR_SHAPE } from "./sockets/vendor-socket.ts";
import { type Asking, audited } from "./speech-access.ts";

const MAX_BODY_BYTES = 16_384;
const VENDOR_PATH = "/v1/single-use-token/:type";

export function routeTokens(app: Routes, { door }: { readonly door: Door }): void {
  app.post("/tokens", "known", (res, req, caller) => {
    const reply = new Reply(res);
    const asking = { door, caller, surface: "/tokens", address: requestAddress(res, req, door.proxyTrust) };
    readBody(res, MAX_BODY_BYTES)
      .then((body) => {
        const minted = audited(asking, () => {
          const key = mintingKey(caller);
          return mint(door, { caller, key, request: readMintRequest(parseJson(body, "Body"), key) });
        });
        const expiresAt = Math.ceil(minted.expiresMs / 1000);
        reply.send(created(201, { token: minted.token, expires_at: expiresAt }));
      })
      .catch((thrown: unknown) => reply.fail(thrown));
  });
  app.post(
    VENDOR_PATH,
    "known",
    (res, req, caller) => {
      // Without keys the upstream makes them.
      if (caller.isAnybody) req.setYield(true);
      else {
        const address = requestAddress(res, req, door.proxyTrust);
        answerVendor(res, { door, caller, surface: VENDOR_PATH, address, type: pathPart(req) });
      }
    },
    VENDOR_SHAPE,
  );
}

function answerVendor(res: HttpResponse, { type, ...asking }: Asking & { readonly type: string }): void {
  const { door, caller } = asking;
  const reply = new Reply(res);
  try {
    const key = audited(asking, () => {
      const minting = mintingKey(caller);
      caller.must("speak");
      return minting;
    });
    if (type !== "tts_websocket") {
      const message =
        "Field 'token_type' is not valid: this gateway has speech sockets only, expected tts_websocket";
      throw new GatewayError("invalid_field", message, { field: "token_type" });
    }
    const { token } = mint(door, { caller, key, request: vendorSocketToken(key) });
    reply.send(created(200, { token }));
  } catch (thrown) {
    const { status, body } = accessRefusal(toGatewayError(thrown));
    reply.send({ status, contentType: "application/json", body });
  }
}

interface Minting {
  readonly caller: Caller;
  readonly key: Key;
  readonly request: MintRequest;
}

function mint({ access, audit }: Door, { caller, key, request }: Minting): MintedToken {
  const minted = access.mint(key, request);
  audit.minted(caller, { tokenId: minted.id, subject: request.subject });
  return minted;
}

/** Throws not_found where there are no keys, forbidden where a token asks. */
function mintingKey({ key, token }: Caller): Key {
  if (key === null) throw new GatewayError("not_found", "No keys are set: nobody needs a token");
  if (token !== null) throw forbidden("A token can't make tokens: ask with a key");
  return key;
}

/** No cache keeps it. */
function created(status: number, body: object): Answer {
  const headers = { "cache-control": "no-store" };
  return { status, contentType: "application/json", body: JSON.stringify(body), headers };
}

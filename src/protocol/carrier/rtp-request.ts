/** The body of `POST /carrier/rtp`: what RTP itself does not say of a call. */
import { isIP } from "node:net";
import { z } from "zod";
import { GatewayError } from "../../errors.ts";
import { readJson } from "../read-json.ts";
import type { AudioFormat } from "../vocabulary.ts";

const RTP_FORMATS = ["ulaw_8000", "alaw_8000"] as const satisfies readonly AudioFormat[];
/** What a call over RTP may have. */
export type RtpFormat = (typeof RTP_FORMATS)[number];

export interface RtpRequest {
  /** The session that the call joins. */
  readonly session: string;
  /** Where to send to; null: to the first that sends. */
  readonly peer: { readonly address: string; readonly port: number } | null;
  /** The peer never sends: it is sent to all the same. Only with a peer that is named. */
  readonly isListenOnly: boolean;
  readonly format: RtpFormat;
  /** Payload type of telephone events (RFC 4733), 96-127. */
  readonly dtmfPayloadType: number;
  /** What the caller hears first. */
  readonly text?: string;
  readonly voiceId?: string;
}

const REQUEST = z.strictObject({
  session: z.string().min(1).max(64),
  remote: z.string().max(80).optional(),
  listen_only: z.boolean().default(false),
  format: z.enum(RTP_FORMATS).default("ulaw_8000"),
  dtmf_payload_type: z.int().min(96).max(127).default(101),
  text: z.string().max(10_000).optional(),
  voice_id: z.string().max(200).optional(),
});

/** Throws malformed_json, invalid_field. */
export function readRtpRequest(body: string): RtpRequest {
  const { remote, listen_only, format, session, dtmf_payload_type, text, voice_id } = readJson(
    body === "" ? "{}" : body,
    REQUEST,
    "Body",
  );
  if (listen_only && remote === undefined) {
    throw new GatewayError(
      "invalid_field",
      "Field listen_only can't be used: expected remote beside it, as a peer that never sends can't be found out",
      { field: "listen_only" },
    );
  }
  return {
    session,
    format,
    peer: remote === undefined ? null : peerOf(remote),
    isListenOnly: listen_only,
    dtmfPayloadType: dtmf_payload_type,
    ...(text === undefined ? {} : { text }),
    ...(voice_id === undefined ? {} : { voiceId: voice_id }),
  };
}

/** `192.0.2.1:4000`, `[2001:db8::1]:4000`. */
function peerOf(remote: string): { readonly address: string; readonly port: number } {
  const parts = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):(\d{1,5})$/.exec(remote);
  const address = parts?.[1] ?? parts?.[2] ?? "";
  const port = Number(parts?.[3]);
  if (isIP(address) !== 0 && port >= 1 && port <= 65_535) return { address, port };
  throw new GatewayError(
    "invalid_field",
    "Field remote can't be used: expected an IP address and a port, e.g. 192.0.2.1:4000",
    { field: "remote" },
  );
}

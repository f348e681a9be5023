/** Kinds of hostile clients: what each writes first, what it writes then, and whether it reads what it is sent. */

import { clientMessage, OPCODE_TEXT, upgradeRequest } from "./client-wire.ts";
import type { AttackArgs } from "./commands.ts";

export const HOSTILE_KINDS = {
  silent: "connect and stay silent",
  "slow-head": "send a head byte by byte",
  "slow-body": "send a body byte by byte",
  "bad-token": "come with a bad token, again and again",
  "vendor-silent": "open a vendor socket and send nothing",
  unread: "listen and read nothing",
  "half-open": "join, then neither read nor send",
  "legal-flood": "flood with pings",
  "refused-flood": "flood with messages that are refused",
} as const;

/** Those that come together in `crowd`: most of them do nothing wrong. */
export const CROWD_KINDS = {
  idle: "listen where nobody speaks",
  slow: "read a little, rarely",
  flood: "flood with pings and with messages that are refused",
} as const;

export type CrowdKind = keyof typeof CROWD_KINDS;
export type HostileKind = keyof typeof HOSTILE_KINDS | CrowdKind;

/** Messages that one flooding connection sends at once, once a second. */
export const FLOOD_MESSAGES = 10;
/** A flooding connection of `crowd` sends so many messages of each sort at once. */
export const CROWD_FLOOD_MESSAGES = 50;
/** Idle connections of one session: a gateway has 10,000 sessions at most. */
const IDLE_A_SESSION = 10;
/** A slow one reads one piece in so many beats. */
const SLOW_BEATS = 10;
/** A head or a body is longer than anybody waits for: its bytes never end it. */
const NEVER_SENT_BYTES = 3000;

/** What one client does. */
export interface HostilePlan {
  /** Written as soon as it is connected. */
  readonly first: Buffer | null;
  /** Written a second later, and each second after that. */
  readonly beat: Buffer | null;
  /** Whether it waits for a 101 before its beats, and goes away on any other answer. */
  readonly upgrades: boolean;
  /** It reads nothing after the first answer; with `readsEvery` one piece in so many beats. */
  readonly stopsReading: boolean;
  readonly readsEvery?: number;
  /** Codes in what it is sent are counted. */
  readonly countsCodes?: boolean;
}

/** `index`: the client's number. */
export function hostilePlan(args: AttackArgs, index: number): HostilePlan {
  const { kind, port, token } = args;
  const plain = { first: null, beat: null, upgrades: false, stopsReading: false };
  const ownSession = upgrade(port, `/live/hostile-${index}?format=none`, token);
  switch (kind) {
    case "silent":
      return plain;
    case "slow-head":
      return {
        ...plain,
        first: Buffer.from(`GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nX-Slow: `),
        beat: Buffer.from("a"),
      };
    case "slow-body":
      return { ...plain, first: Buffer.from(speechHead(port, token)), beat: Buffer.from("{") };
    case "bad-token":
      return { ...plain, ...upgrade(port, `/live/hostile-${index}`, args.badToken) };
    case "vendor-silent":
      return { ...plain, ...upgrade(port, "/v1/text-to-speech/bench/stream-input") };
    case "unread": {
      const path = `/live/${args.sessionName}-${index % args.sessions}?role=listener&format=ulaw_8000&policy=live`;
      return { ...plain, ...upgrade(port, path, token), stopsReading: true };
    }
    case "idle": {
      const path = `/live/idle-${Math.floor(index / IDLE_A_SESSION)}?format=ulaw_8000`;
      return { ...plain, ...upgrade(port, path, token) };
    }
    case "slow": {
      const path = `/live/${args.sessionName}-${index % args.sessions}?role=listener&format=ulaw_8000`;
      return { ...plain, ...upgrade(port, path, token), stopsReading: true, readsEvery: SLOW_BEATS };
    }
    case "flood": {
      const pings = flood('{"type":"ping"}', CROWD_FLOOD_MESSAGES);
      const beat = Buffer.concat([pings, flood('{"type":"no such thing"}', CROWD_FLOOD_MESSAGES)]);
      return { ...plain, ...ownSession, beat, countsCodes: true };
    }
    case "half-open":
      return { ...plain, ...ownSession, stopsReading: true };
    case "legal-flood":
      return { ...plain, ...ownSession, beat: flood('{"type":"ping"}') };
    case "refused-flood":
      return { ...plain, ...ownSession, beat: flood('{"type":"no such thing"}') };
  }
}

function upgrade(port: number, path: string, credential?: string) {
  return { first: Buffer.from(upgradeRequest({ port, path, credential })), upgrades: true };
}

function speechHead(port: number, token: string): string {
  return (
    `POST /v1/audio/speech HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${NEVER_SENT_BYTES}\r\n\r\n`
  );
}

function flood(message: string, count = FLOOD_MESSAGES): Buffer {
  const one = clientMessage(OPCODE_TEXT, Buffer.from(message));
  return Buffer.concat(Array.from({ length: count }, () => one));
}

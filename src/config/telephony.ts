/** Phone calls: how many, who may make them, and the ports that are no WebSocket. */
import type { SettingRow } from "./setting.ts";

export const TELEPHONY = [
  {
    key: "maxCalls",
    kind: "integer",
    default: 10_000,
    min: 0,
    max: 1_000_000,
    unit: "connections",
    about: "Most phone calls at once; 0 takes none",
  },
  {
    key: "callBand",
    kind: "choice",
    default: "full",
    choices: ["full", "telephone"],
    about:
      "What callers hear of speech: all that their codec has, or 300 to 3400 Hz as a telephone passes it",
  },
  {
    key: "comfortNoiseDbfs",
    kind: "integer",
    default: 0,
    min: -90,
    max: 0,
    about:
      "Noise in sessions with phone calls, so that the line does not sound dead: its power, dB below a sine of full scale, e.g. -60; 0 = none",
  },
  {
    key: "carriers",
    kind: "string",
    default: "",
    about:
      "Carriers that are served, with commas, e.g. twilio,rtp (docs/telephony.md); empty: all that have a check, or all where there is none",
  },
  {
    key: "twilioAuthToken",
    kind: "string",
    default: "",
    isSecret: true,
    about: "Auth token by which Twilio signs: its calls have to be signed then, for public-url",
  },
  {
    key: "carrierToken",
    kind: "string",
    default: "",
    isSecret: true,
    about:
      "Token that carriers have to show (bearer, basic password, or `token` in the URL): one for all, or NAME=TOKEN with commas",
  },
  {
    key: "audiosocketPort",
    kind: "integer",
    default: 0,
    min: 0,
    max: 65_535,
    about: "TCP port for Asterisk's AudioSocket; 0 = none",
  },
  {
    key: "audiosocketAllow",
    kind: "string",
    default: "",
    about: "Networks that AudioSocket calls may come from, e.g. 10.0.0.0/8,192.0.2.7; empty: all",
  },
  {
    key: "rtpPorts",
    kind: "string",
    default: "",
    about:
      "UDP ports for RTP calls, e.g. 10000-10100, of which the even ones are used; empty takes any that is free",
  },
  {
    key: "rtpPeers",
    kind: "string",
    default: "private",
    about:
      "Networks that RTP peers may be in, e.g. 10.0.0.0/8,192.0.2.7; `private`: the private networks that this machine is in; `none`: nobody",
  },
  {
    key: "rtpListenOnly",
    kind: "boolean",
    default: false,
    about: "Allow RTP calls with listen_only, which send for ever to a peer that never sends",
  },
] as const satisfies readonly SettingRow[];

/** What `voicewire captions` was asked to do: its flags, checked before anything is opened. */
import { CUE_MODES, CUE_PROFILES, type CueMode, type CueProfile } from "../../protocol/vocabulary.ts";
import { usageError } from "../exit.ts";
import { choiceFlag, type Flag, type ParsedArguments, parseArguments } from "../flags.ts";
import type { Io } from "../io.ts";
import { FOLLOW_FLAGS, type FollowPlan, planFollow, URL_FLAG } from "../session/follow.ts";

export const CAPTIONS_FLAGS: readonly Flag[] = [
  URL_FLAG,
  { name: "vtt", value: "FILE", about: "WebVTT; - is stdout" },
  { name: "srt", value: "FILE", about: "SRT; - is stdout" },
  {
    name: "obs",
    value: "ws://HOST:4455",
    about: "OBS Studio (obs-websocket 5); its password in VOICEWIRE_OBS_PASSWORD",
  },
  { name: "zoom", value: "URL", about: "The meeting's API token for captions; or in VOICEWIRE_ZOOM_URL" },
  {
    name: "youtube",
    value: "URL",
    about: "The stream's captions ingestion URL; or in VOICEWIRE_YOUTUBE_URL",
  },
  { name: "lang", value: "CODE", about: "Language for Zoom (default en-US)" },
  {
    name: "profile",
    value: "PROFILE",
    about: `Layout: ${CUE_PROFILES.join(", ")} (default web; with --obs broadcast)`,
  },
  { name: "mode", value: "MODE", about: `${CUE_MODES.join(" or ")} (default pop-on)` },
  ...FOLLOW_FLAGS,
];

export interface CaptionsPlan extends FollowPlan {
  readonly vtt: string | undefined;
  readonly srt: string | undefined;
  readonly obs: { readonly address: URL; readonly password: string } | undefined;
  readonly zoom: { readonly address: URL; readonly language: string } | undefined;
  readonly youtube: URL | undefined;
  readonly profile: CueProfile;
  readonly mode: CueMode;
}

const HTTP = ["http:", "https:"];

/** Throws `invalid_config` for flags that are wrong or where nothing is to be done; never with an address in it. */
export function planCaptions(io: Io, args: readonly string[]): CaptionsPlan {
  const parsed = parseArguments(args, CAPTIONS_FLAGS);
  const follow = planFollow(io, parsed, "voicewire captions demo --vtt demo.vtt");
  const obs = addressOf(parsed, "obs", { given: parsed.text("obs"), schemes: ["ws:", "wss:"] });
  const zoom = addressOf(parsed, "zoom", {
    given: parsed.text("zoom") ?? io.env.VOICEWIRE_ZOOM_URL,
    schemes: HTTP,
  });
  const youtube = addressOf(parsed, "youtube", {
    given: parsed.text("youtube") ?? io.env.VOICEWIRE_YOUTUBE_URL,
    schemes: HTTP,
  });
  const [vtt, srt] = [parsed.text("vtt"), parsed.text("srt")];
  if (vtt === "-" && srt === "-") throw usageError("Flags --vtt and --srt: both to stdout", "srt");
  if ([vtt, srt, obs, zoom, youtube].every((target) => target === undefined)) {
    throw usageError("Nowhere to put captions: expected --vtt, --srt, --obs, --zoom or --youtube", "vtt");
  }
  return {
    ...follow,
    vtt,
    srt,
    obs: obs === undefined ? undefined : obsOf(obs, io.env.VOICEWIRE_OBS_PASSWORD ?? ""),
    zoom: zoom === undefined ? undefined : { address: zoom, language: parsed.text("lang") ?? "en-US" },
    youtube,
    profile: choiceFlag(parsed, "profile", CUE_PROFILES) ?? (obs === undefined ? "web" : "broadcast"),
    mode: choiceFlag(parsed, "mode", CUE_MODES) ?? "pop-on",
  };
}

/** A password may stand in the address as well (`ws://:password@host`); it is taken out of it. */
function obsOf(given: URL, password: string): { readonly address: URL; readonly password: string } {
  const address = new URL(given);
  const own = decodeURIComponent(address.password);
  address.username = "";
  address.password = "";
  return { address, password: own === "" ? password : own };
}

function addressOf(
  parsed: ParsedArguments,
  name: string,
  { given, schemes }: { readonly given: string | undefined; readonly schemes: readonly string[] },
): URL | undefined {
  if (given === undefined || (given === "" && parsed.text(name) === undefined)) return undefined;
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url !== undefined && schemes.includes(url.protocol)) return url;
  // Not what was given: it has a signature in it.
  throw usageError(`Flag --${name}: expected an address that begins with ${schemes.join("// or ")}//`, name);
}

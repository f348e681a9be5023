/** `voicewire token`: signs a token with the key file's own signing key, or asks a running gateway for one. */
import { Access, MAX_LIFE_MS } from "../../access/access.ts";
import { type Action, GRANTS } from "../../access/grants.ts";
import { isExpired, type Key, type KeyRing } from "../../access/keys.ts";
import { EXIT, usageError } from "../exit.ts";
import { type Flag, integerFlag, parseArguments } from "../flags.ts";
import type { CommandModule } from "../help.ts";
import type { Io } from "../io.ts";
import { gatewayKey, KEY_FLAG } from "../session/gateway-key.ts";
import { gatewayUrl } from "../session/join-session.ts";
import { askForToken } from "./ask-for-token.ts";
import { actionsOf, FILE_FLAGS, GRANT_FLAGS, keyFilePath, sessionsOf } from "./key-flags.ts";
import { loadKeys } from "./key-store.ts";

const DEFAULT_LIFE_SECONDS = 60;

const FLAGS: readonly Flag[] = [
  ...GRANT_FLAGS,
  {
    name: "for",
    value: "SUBJECT",
    about: "Whose it is: the audit log has it, and keys revoke --subject takes it",
  },
  {
    name: "expires-in",
    value: "SECONDS",
    about: `How long it opens connections (default ${DEFAULT_LIFE_SECONDS}, at most a day)`,
  },
  { name: "once", about: "It opens one connection, then nothing; such a token may stand in a URL" },
  {
    name: "url",
    value: "URL",
    about: "Ask this gateway for it, with a key of it (VOICEWIRE_KEY), in place of the file",
  },
  KEY_FLAG,
  ...FILE_FLAGS,
];

export const token: CommandModule = {
  help: {
    name: "token",
    usage: ["token --sessions LIST --allow LIST --for SUBJECT [FLAGS]"],
    about:
      "Signs a token with the key of the key file that mints, and prints it. It is what a browser gets: for a short time, for " +
      "these sessions, and for nothing else. It reads the file itself, and needs no gateway; with --url it asks a running one. " +
      "What that key does not allow, such as admin, the token has from the first key of the file that does.",
    flags: FLAGS,
    examples: [
      {
        line: "voicewire token --sessions demo --allow listen --for ann",
        about: "ann may listen to demo; for a minute it opens connections",
      },
      {
        line: "VOICEWIRE_KEY=$(voicewire token --sessions demo --allow open,speak,listen --for me) voicewire say -s demo Hello",
        about: "speak with it",
      },
      {
        line: "VOICEWIRE_KEY=vwk_... voicewire token --url https://voice.example.com --sessions demo --allow listen --for ann",
        about: "from a machine that has a key, but not the file",
      },
    ],
  },
  run: runToken,
};

async function runToken(io: Io, args: readonly string[]): Promise<number> {
  const parsed = parseArguments(args, FLAGS);
  const [surplus] = parsed.positionals;
  if (surplus !== undefined) throw usageError(`Argument "${surplus}": token takes flags only`, surplus);
  const subject = parsed.text("for") ?? "";
  if (!/^[\x21-\x7e]{1,128}$/.test(subject)) {
    throw usageError("Flag --for: expected whose the token is, up to 128 characters without spaces", "for");
  }
  const [sessions, allow] = [sessionsOf(parsed), actionsOf(parsed)];
  if (sessions === undefined)
    throw usageError("Flag --sessions: expected such as --sessions demo", "sessions");
  if (allow === undefined) throw usageError("Flag --allow: expected such as --allow listen", "allow");
  const grants = GRANTS.safeParse({ sessions, allow, ...(parsed.has("once") ? { once: true } : {}) });
  if (!grants.success) {
    throw usageError(
      `Flag --sessions: ${grants.error.issues[0]?.message ?? "not a list of names"}`,
      "sessions",
    );
  }
  const lifeSeconds = integerFlag(parsed, "expires-in", {
    min: 1,
    max: MAX_LIFE_MS / 1000,
    fallback: DEFAULT_LIFE_SECONDS,
  });
  const url = parsed.text("url");
  if (url !== undefined) {
    if (parsed.text("file") !== undefined) {
      throw usageError("Flags --url and --file: one says who makes the token, expected one of them", "url");
    }
    const gateway = { baseUrl: gatewayUrl(url), key: gatewayKey(io, parsed) };
    io.stdout.write(`${await askForToken(gateway, { subject, grants: grants.data, lifeSeconds })}\n`);
    return EXIT.ok;
  }
  const ring = loadKeys(keyFilePath(io, parsed));
  const access = new Access({ keys: () => ring, nowMs: Date.now, takesTokensInUrl: false });
  const minted = access.mint(keyAbove(ring, allow), {
    subject,
    grants: grants.data,
    lifeMs: lifeSeconds * 1000,
  });
  io.stdout.write(`${minted.token}\n`);
  return EXIT.ok;
}

/** The key that the token stands below: the first that allows all of it, one that mints before the others. Throws invalid_config. */
function keyAbove(ring: KeyRing, allow: readonly Action[]): Key {
  const nowMs = Date.now();
  const minting = ring.mintingAt(nowMs, { forOthers: false });
  if (minting === undefined) {
    throw usageError('Key file: no key of it mints, expected one with a secret and "mints": true', "file");
  }
  const missing = ({ grants }: Key) => allow.filter((action) => !grants.allow.includes(action));
  if (missing(minting).length === 0) return minting;
  const able = [...ring].filter((key) => missing(key).length === 0 && !isExpired(key, nowMs));
  const key = able.find(({ mints }) => mints) ?? able[0];
  if (key !== undefined) return key;
  throw usageError(
    `Flag --allow: no key of the file allows ${allow.join(",")}; ${minting.id}, which signs, lacks ${missing(minting).join(",")}. ` +
      `Make one that does, then ask again: voicewire keys new operators --allow ${allow.join(",")}`,
    "allow",
  );
}

/** `voicewire keys`: makes, lists, removes and withdraws what opens a gateway. */
import { ACTIONS, EVERY_SESSION } from "../../access/grants.ts";
import { type Key, keyFileSchema, newSecret, newStaticKey } from "../../access/keys.ts";
import { EXIT, usageError } from "../exit.ts";
import { type Flag, type ParsedArguments, parseArguments } from "../flags.ts";
import type { CommandModule } from "../help.ts";
import type { Io } from "../io.ts";
import { didYouMean } from "../suggest.ts";
import { actionsOf, FILE_FLAGS, GRANT_FLAGS, keyFilePath, sessionsOf } from "./key-flags.ts";
import { changeKeys, type KeyFileContent, loadKeys } from "./key-store.ts";

const FLAGS: readonly Flag[] = [
  ...FILE_FLAGS,
  ...GRANT_FLAGS,
  { name: "tenant", value: "NAME", about: "new: whose the key is; limits count for all keys of a tenant" },
  {
    name: "expires",
    value: "WHEN",
    about:
      "new, remove: when the key ends: a time such as 2027-01-31 or 2027-01-31T12:00:00Z, or from now: 90d, 12h, 30m",
  },
  {
    name: "signs",
    about:
      "new: a key that your own server signs tokens with (HS256); its secret is printed, and stands in the file",
  },
  { name: "token", value: "JTI", about: "revoke: the id of one token, as the audit log has it" },
  { name: "subject", value: "SUBJECT", about: "revoke: all tokens that this subject has now" },
];

export const keys: CommandModule = {
  help: {
    name: "keys",
    usage: [
      "keys new ID [FLAGS]",
      "keys list [FLAGS]",
      "keys remove ID [--expires WHEN] [FLAGS]",
      "keys revoke --token JTI [FLAGS]",
      "keys revoke --subject SUBJECT [FLAGS]",
      "keys schema",
    ],
    about:
      "The key file of a gateway: with it (serve --keys-file) every request needs a key or a token. new makes a key for a " +
      "server and prints it once; the file keeps its digest only. A running gateway sees each change within two seconds. " +
      "Without --allow and --sessions a key may do everything but admin. docs/access.md shows the file.",
    flags: FLAGS,
    examples: [
      { line: "voicewire keys new app --file keys.json", about: "a key for your server, and the file" },
      {
        line: "voicewire keys new kiosk --allow listen --sessions 'lobby-*' --expires 90d",
        about: "a key that only listens, to these sessions",
      },
      { line: "voicewire keys list", about: "who may do what; no secrets" },
      { line: "voicewire keys revoke --subject ann", about: "all tokens that ann has now end at once" },
      { line: "voicewire keys remove app", about: "and whoever is connected with it is out" },
      {
        line: "voicewire keys remove app --expires 30m",
        about: "its clients have until then to show another key or its tokens",
      },
    ],
  },
  run: runKeys,
};

type Action = (io: Io, parsed: ParsedArguments, rest: readonly string[]) => void;

const SUBCOMMANDS: Readonly<Record<string, Action>> = {
  new: newKey,
  list: listKeys,
  remove: removeKey,
  revoke,
  schema: (io) => io.stdout.write(`${JSON.stringify(keyFileSchema(), null, 2)}\n`),
};

async function runKeys(io: Io, args: readonly string[]): Promise<number> {
  const parsed = parseArguments(args, FLAGS);
  const [name, ...rest] = parsed.positionals;
  const names = Object.keys(SUBCOMMANDS);
  const action = name === undefined || !names.includes(name) ? undefined : SUBCOMMANDS[name];
  if (action === undefined) {
    const hint = name === undefined ? "" : didYouMean(name, names);
    throw usageError(`voicewire keys: expected one of ${names.join(", ")}${hint}`, "keys");
  }
  action(io, parsed, rest);
  return EXIT.ok;
}

function newKey(io: Io, parsed: ParsedArguments, rest: readonly string[]): void {
  const id = onlyId(rest, "new app");
  const path = keyFilePath(io, parsed);
  const isSigning = parsed.has("signs");
  const made = isSigning ? signingKey() : staticKey(id);
  const [sessions, allow] = [sessionsOf(parsed), actionsOf(parsed)];
  const isNarrow = sessions !== undefined || allow !== undefined;
  const tenant = parsed.text("tenant");
  const expires = parsed.text("expires");
  const entry = {
    id,
    ...made.fields,
    ...(tenant === undefined ? {} : { tenant }),
    ...(isNarrow
      ? { grants: { sessions: sessions ?? EVERY_SESSION.sessions, allow: allow ?? EVERY_SESSION.allow } }
      : {}),
    ...(expires === undefined ? {} : { expires: timeOf(expires) }),
  };
  const { isNew } = changeKeys(path, { mayCreate: true }, (content) => {
    return { ...content, keys: [...content.keys, entry] };
  });
  if (isNew)
    io.stderr.write(`Made ${path}, with a signing key for tokens. Start: serve --keys-file ${path}\n`);
  io.stderr.write(
    `The ${isSigning ? "secret" : "key, shown this once"}; keep it where your server's secrets are:\n`,
  );
  io.stdout.write(`${made.shown}\n`);
}

/** `fields` stand in the file, `shown` is its owner's. */
interface MadeKey {
  readonly fields: object;
  readonly shown: string;
}

function staticKey(id: string): MadeKey {
  const { key, hash } = newStaticKey(id);
  return { fields: { hash }, shown: key };
}

function signingKey(): MadeKey {
  const secret = newSecret();
  return { fields: { algorithm: "HS256", secret }, shown: secret };
}

function listKeys(io: Io, parsed: ParsedArguments, rest: readonly string[]): void {
  nothingMore(rest);
  const ring = loadKeys(keyFilePath(io, parsed));
  const rows = [["ID", "KIND", "TENANT", "ALLOWS", "SESSIONS", "EXPIRES"], ...[...ring].map(rowOf)];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  for (const row of rows) {
    const line = row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ");
    io.stdout.write(`${line.trimEnd()}\n`);
  }
  const { tokens, subjects } = ring.revoked;
  if (tokens.size + subjects.size > 0) {
    io.stdout.write(`Withdrawn: ${tokens.size} tokens, ${subjects.size} subjects\n`);
  }
}

function rowOf({ id, signing, mints, tenant, grants, expiresMs }: Key): string[] {
  const kind = signing === null ? "static" : `signs ${signing.algorithm}${mints ? ", mints" : ""}`;
  const isMost = ACTIONS.every((action) => action === "admin" || grants.allow.includes(action));
  const allow =
    grants.allow.length === ACTIONS.length ? "all" : isMost ? "all but admin" : grants.allow.join(",");
  const expires = expiresMs === null ? "never" : new Date(expiresMs).toISOString();
  return [id, kind, tenant === "" ? "-" : tenant, allow, grants.sessions.join(","), expires];
}

function removeKey(io: Io, parsed: ParsedArguments, rest: readonly string[]): void {
  const id = onlyId(rest, "remove app");
  const expires = parsed.text("expires");
  const endsAt = expires === undefined ? null : timeOf(expires);
  changeKeys(keyFilePath(io, parsed), { mayCreate: false }, (content) => {
    if (content.keys.every((key) => key.id !== id)) throw unknownId(id, content);
    const keys =
      endsAt === null
        ? content.keys.filter((key) => key.id !== id)
        : content.keys.map((key) => (key.id === id ? { ...key, expires: endsAt } : key));
    return { ...content, keys };
  });
  io.stderr.write(endsAt === null ? `Removed ${id}\n` : `${id} ends at ${endsAt}; remove it then\n`);
}

function unknownId(id: string, { keys: known }: KeyFileContent): Error {
  const hint = didYouMean(
    id,
    known.map((key) => key.id),
  );
  return usageError(`No key has the id "${id}"${hint}: voicewire keys list shows them`, "ID");
}

function revoke(io: Io, parsed: ParsedArguments, rest: readonly string[]): void {
  nothingMore(rest);
  const [token, subject] = [parsed.text("token"), parsed.text("subject")];
  if ((token === undefined) === (subject === undefined)) {
    throw usageError("voicewire keys revoke: expected one of --token JTI and --subject SUBJECT", "token");
  }
  const flag = token === undefined ? "subject" : "token";
  if (!/^[\x21-\x7e]{1,128}$/.test(token ?? subject ?? "")) {
    throw usageError(
      `Flag --${flag}: expected 1 to 128 visible ASCII characters, as the audit log has it`,
      flag,
    );
  }
  // A token is withdrawn whatever second of now it is of: its issuer counts whole ones.
  const nowSeconds = Math.floor(Date.now() / 1000) + 1;
  changeKeys(keyFilePath(io, parsed), { mayCreate: false }, (content) => {
    const { tokens = [], subjects = {} } = content.revoked ?? {};
    return withRevoked(content, {
      tokens: token === undefined ? tokens : [...new Set([...tokens, token])],
      subjects: subject === undefined ? subjects : { ...subjects, [subject]: nowSeconds },
    });
  });
  io.stderr.write(
    `Withdrawn: ${token === undefined ? `all tokens that ${subject} has now` : `token ${token}`}\n`,
  );
}

function withRevoked(
  content: KeyFileContent,
  revoked: Required<NonNullable<KeyFileContent["revoked"]>>,
): KeyFileContent {
  return { ...content, revoked: { ...content.revoked, ...revoked } };
}

function onlyId(rest: readonly string[], example: string): string {
  const [id, surplus] = rest;
  if (id !== undefined && surplus === undefined) return id;
  throw usageError(`Expected one id, as in voicewire keys ${example}`, "ID");
}

function nothingMore([surplus]: readonly string[]): void {
  if (surplus !== undefined) throw usageError(`Argument "${surplus}": expected flags only`, surplus);
}

const UNIT_MS: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000, m: 60_000 };

/** ISO 8601 in UTC. Throws `invalid_config`. */
function timeOf(text: string): string {
  const [, count = "", unit = ""] = /^(\d{1,5})([dhm])$/.exec(text) ?? [];
  const isTime = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d.*)?$/.test(text);
  const timeMs =
    count === ""
      ? isTime
        ? Date.parse(text)
        : Number.NaN
      : Date.now() + Number(count) * (UNIT_MS[unit] ?? 0);
  if (timeMs > Date.now()) return new Date(timeMs).toISOString();
  throw usageError(
    `Flag --expires: "${text}", expected a time to come (2027-01-31), or 90d, 12h, 30m`,
    "expires",
  );
}

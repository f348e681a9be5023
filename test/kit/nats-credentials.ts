/** An operator, an account with JetStream and users of it, made for one test: what `nsc` makes for operators. */
import { nkeys } from "@nats-io/transport-node";

type KeyPair = ReturnType<typeof nkeys.createUser>;

const NO_LIMIT = { subs: -1, data: -1, payload: -1 };
const JETSTREAM = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };

export interface NatsCredentials {
  /** For the server's configuration file. */
  readonly config: string;
  /** Text of a credentials file of a user whom the account knows, or of one of another account. */
  user(isKnown: boolean): string;
}

export function makeNatsCredentials(): NatsCredentials {
  const [operator, account, stranger, system] = [
    nkeys.createOperator(),
    nkeys.createAccount(),
    nkeys.createAccount(),
    nkeys.createAccount(),
  ];
  const limits = { ...NO_LIMIT, ...JETSTREAM, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 };
  const accountToken = token(operator, account, { type: "account", limits });
  const systemToken = token(operator, system, {
    type: "account",
    limits: { ...limits, mem_storage: 0, disk_storage: 0 },
  });
  return {
    config: [
      `operator: ${token(operator, operator, { type: "operator", system_account: system.getPublicKey() })}`,
      `system_account: ${system.getPublicKey()}`,
      "resolver: MEMORY",
      `resolver_preload { ${account.getPublicKey()}: ${accountToken}, ${system.getPublicKey()}: ${systemToken} }`,
    ].join("\n"),
    user: (isKnown) => {
      const user = nkeys.createUser();
      const userToken = token(isKnown ? account : stranger, user, { type: "user", ...NO_LIMIT });
      const seed = new TextDecoder().decode(user.getSeed());
      return [
        `-----BEGIN NATS USER JWT-----\n${userToken}\n------END NATS USER JWT------`,
        `-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`,
      ].join("\n\n");
    },
  };
}

function token(issuer: KeyPair, subject: KeyPair, nats: object): string {
  const encode = (value: string | Uint8Array): string => Buffer.from(value).toString("base64url");
  const header = encode(JSON.stringify({ typ: "JWT", alg: "ed25519-nkey" }));
  const sub = subject.getPublicKey();
  const claims = {
    jti: sub,
    iat: 1_700_000_000,
    iss: issuer.getPublicKey(),
    name: sub,
    sub,
    nats: { ...nats, version: 2 },
  };
  const signed = `${header}.${encode(JSON.stringify(claims))}`;
  return `${signed}.${encode(issuer.sign(new TextEncoder().encode(signed)))}`;
}

/** The client at a real gateway with keys: how its token gets there, and how it is replaced before it expires. */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { type Connection, type ConnectOptions, connect } from "../../../src/client/index.ts";
import { type FakeUpstream, startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { SPEAKER, TestKeys, tokenFor } from "../../helpers/key-file.ts";
import { gatewayAt, type TestGateway } from "../../helpers/start-gateway.ts";

const keys = new TestKeys();
let upstream: FakeUpstream;
let gateway: TestGateway;
const open: Connection[] = [];
/** Of each socket that was opened. */
const offers: { readonly url: string; readonly protocols: string[]; readonly socket: WebSocket }[] = [];

class WatchedWebSocket extends WebSocket {
  constructor(url: string, protocols: string[] = []) {
    super(url, protocols);
    offers.push({ url, protocols, socket: this });
  }
}

beforeAll(async () => {
  upstream = await startFakeUpstream();
  gateway = await gatewayAt(upstream.url, { keysFile: keys.path });
});

afterEach(async () => {
  await Promise.all(open.splice(0).map((connection) => connection.close()));
  offers.length = 0;
});

afterAll(async () => {
  await gateway.close();
  await upstream[Symbol.asyncDispose]();
  keys[Symbol.dispose]();
});

async function join(
  token: ConnectOptions["token"],
  options: Pick<ConnectOptions, "reconnect"> = {},
): Promise<Connection> {
  const connection = await connect({
    baseUrl: gateway.url,
    session: "s",
    settings: { format: "none" },
    WebSocket: WatchedWebSocket,
    ...(token === undefined ? {} : { token }),
    ...options,
  });
  open.push(connection);
  return connection;
}

/** Its connection ends so many seconds from now. */
function shortToken(seconds: number): string {
  return tokenFor({ ...SPEAKER, session_until: Date.now() / 1000 + seconds });
}

const EXPIRED = () => tokenFor(SPEAKER, { lifeSeconds: -100 });
const soon = { firstDelayMs: 1 };

describe("the option token", () => {
  it.each([
    ["a key", () => keys.key],
    ["a token", () => tokenFor(SPEAKER)],
    ["a function", () => () => tokenFor(SPEAKER)],
    ["a function that waits", () => async () => tokenFor(SPEAKER)],
  ])("%s goes as a subprotocol, and never in the address", async (_name, token) => {
    const connection = await join(token());
    expect(connection.hello.session).toBe("s");
    const [offer] = offers;
    expect(offer?.protocols).toEqual(["voicewire.v1", expect.stringMatching(/^voicewire\.token\.\S{40}/)]);
    expect(offer?.url).not.toMatch(/token/);
  });

  it.each([
    ["one that has expired", EXPIRED, "token_expired"],
    ["one that nobody has signed", () => "x.y.z", "unauthorized"],
    ["one for another session", () => tokenFor({ ...SPEAKER, sessions: ["other"] }), "forbidden"],
    ["a text that no token can be", () => "a b\r\nc", "token_failed"],
    ["an empty text", () => "", "token_failed"],
  ])("%s is refused with a code, in Node too", async (_name, token, code) => {
    await expect(join(token())).rejects.toMatchObject({ code });
  });

  it("that is missing is refused in the gateway's words, by its answer to the upgrade", async () => {
    await expect(join(undefined)).rejects.toMatchObject({
      code: "unauthorized",
      message: expect.stringContaining("No valid key or token"),
      isRetryable: false,
    });
  });

  it("the failure of a function is reported, and what it threw does not hide it", async () => {
    const failing = () => Promise.reject(new Error("the app's server is away"));
    await expect(join(failing)).rejects.toMatchObject({
      code: "token_failed",
      message: expect.stringContaining("the app's server is away"),
    });
  });
});

it("a function that never answers is not waited for longer than for hello", async () => {
  const never = () => new Promise<string>(() => undefined);
  const options = { baseUrl: gateway.url, session: "s", WebSocket: WatchedWebSocket };
  const joined = connect({ ...options, token: never, timeoutMs: 20 });
  await expect(joined).rejects.toMatchObject({ code: "token_failed", isRetryable: true });
});

/** In a session of its own: those that wait for seconds wait beside one another. */
async function joinAlone(token: ConnectOptions["token"], options: Pick<ConnectOptions, "reconnect"> = {}) {
  const sockets: WebSocket[] = [];
  class CountedWebSocket extends WebSocket {
    constructor(url: string, protocols: string[] = []) {
      super(url, protocols);
      sockets.push(this);
    }
  }
  const connection = await connect({
    baseUrl: gateway.url,
    session: randomUUID(),
    settings: { format: "none" },
    WebSocket: CountedWebSocket,
    ...(token === undefined ? {} : { token }),
    ...options,
  });
  const close = async (): Promise<void> => {
    await connection.close();
  };
  return { connection, sockets, [Symbol.asyncDispose]: close };
}

describe.concurrent("a token that expires, after seconds", () => {
  it("is replaced in time by itself: the session outlives three of them", async () => {
    let count = 0;
    await using alone = await joinAlone(() => {
      count += 1;
      return shortToken(3);
    });
    const { connection, sockets } = alone;
    const ends: (number | null)[] = [];
    connection.on("refreshed", ({ expires_in_ms }) => ends.push(expires_in_ms));
    await expect.poll(() => ends.length, { timeout: 15_000 }).toBe(4);
    expect(count).toBe(5);
    expect(sockets).toHaveLength(1);
    expect(connection.isOpen).toBe(true);
    expect((await connection.say("Still here.")).outcome).toBe("done");
  });

  it("is asked for again where the function failed, while there is time", async () => {
    let count = 0;
    await using alone = await joinAlone(() => {
      count += 1;
      if (count === 2) throw new Error("away");
      return shortToken(5);
    });
    await new Promise((resolve) => alone.connection.on("refreshed", resolve));
    expect(count).toBe(3);
  });

  it("comes back with a new one after the end, where the function got none in time", async () => {
    // Wider grants are no refresh: the connection runs out, and comes anew.
    const tokens = [
      tokenFor({ ...SPEAKER, allow: ["open", "speak"], session_until: Date.now() / 1000 + 2 }),
      shortToken(60),
    ];
    let count = 0;
    await using alone = await joinAlone(() => tokens[Math.min(count++, 1)] ?? "", { reconnect: soon });
    const { connection, sockets } = alone;
    await new Promise((resolve) => connection.on("reconnected", resolve));
    expect(sockets).toHaveLength(2);
    expect(connection.isOpen).toBe(true);
  });
});

describe("a token that expires", () => {
  it("ends the connection where it is a fixed one, with a code that says so", async () => {
    const connection = await join(shortToken(1), { reconnect: soon });
    const codes: string[] = [];
    connection.on("error", ({ code }) => codes.push(code));
    expect(await connection.closed).toEqual({ code: 4401, reason: "token_expired" });
    expect(codes).toEqual(["token_expired"]);
    expect(offers).toHaveLength(1);
  });

  it("is replaced by refresh(), and the new one is what a fixed one comes back with", async () => {
    const connection = await join(shortToken(30), { reconnect: soon });
    const next = tokenFor(SPEAKER, { lifeSeconds: 600 });
    const { expires_in_ms: endsInMs } = await connection.refresh(next);
    expect(endsInMs).toBeGreaterThan(500_000);
    const back = new Promise((resolve) => connection.on("reconnected", resolve));
    offers.at(-1)?.socket.terminate();
    await back;
    expect(offers.map(({ protocols }) => protocols[1])[1]).toBe(`voicewire.token.${next}`);
  });

  it("refuses refresh() with a token of another subject, and goes on with the old one", async () => {
    const connection = await join(shortToken(30));
    const other = tokenFor(SPEAKER, { claims: { sub: "bob" } });
    await expect(connection.refresh(other)).rejects.toMatchObject({ code: "forbidden" });
    expect(connection.isOpen).toBe(true);
  });

  it("that is refused as late while coming back is replaced at the next try", async () => {
    const tokens = [tokenFor(SPEAKER), EXPIRED(), tokenFor(SPEAKER)];
    let count = 0;
    const connection = await join(() => tokens[count++] ?? "", { reconnect: soon });
    const back = new Promise((resolve) => connection.on("reconnected", resolve));
    offers.at(-1)?.socket.terminate();
    await back;
    expect(offers).toHaveLength(3);
  });

  it("is not tried again where it was withdrawn", async () => {
    const token = tokenFor(SPEAKER, { claims: { jti: "stolen" } });
    const connection = await join(() => token, { reconnect: soon });
    keys.write({ revoked: { tokens: ["stolen"] } });
    expect(await connection.closed).toMatchObject({ code: 4403, reason: "token_revoked" });
    keys.write({});
    expect(offers).toHaveLength(1);
  });
});

/**
 * A browser as an attacker uses it, against a gateway with keys: a page of another origin, even one that has a token, and a
 * name that its owner has bound to the gateway's address (DNS rebinding). Each is let in once it is listed, so that it is
 * the gateway that refuses it and not the browser.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Config } from "../../src/config.ts";
import { type FakeUpstream, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { freePort } from "../helpers/free-port.ts";
import { SPEAKER, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { gatewayAt, type TestGateway } from "../helpers/start-gateway.ts";
import { launchBrowser, whyNoBrowser } from "./browser.ts";

const reason = whyNoBrowser();
const keys = new TestKeys();
/** Names of the attacker, bound to this machine. */
const PAGE_NAME = "page.test";
const REBOUND_NAME = "rebind.test";
let browser: Browser;
let upstream: FakeUpstream;
let pages: Server;

/** What a script of the page got. */
interface Seen {
  /** Status of an answer that the script could read; null: the browser kept it from the script. */
  readonly get: number | null;
  readonly post: number | null;
  /** First event of the socket; null: it closed without one. */
  readonly event: string | null;
  readonly closeCode: number | null;
}

/** Asks the gateway at `url` from a script of this page, as `fetch` and as WebSocket. */
function tryAll(page: Page, url: string, token: string): Promise<Seen> {
  return page.evaluate(
    async ([url, token]) => {
      const status = (path: string, init: RequestInit) =>
        fetch(`${url}${path}`, { ...init, headers: { authorization: `Bearer ${token}` } }).then(
          (answer) => answer.status,
          () => null,
        );
      const socket = new WebSocket(`${url.replace("http", "ws")}/live/s?format=none`, [
        "voicewire.v1",
        `voicewire.token.${token}`,
      ]);
      const heard = new Promise<{ event: string | null; closeCode: number | null }>((resolve) => {
        socket.onmessage = ({ data }) => resolve({ event: JSON.parse(data).type, closeCode: null });
        socket.onclose = ({ code }) => resolve({ event: null, closeCode: code });
      });
      const seen = {
        get: await status("/v1/voices", {}),
        post: await status("/live/nobody/speak", { method: "POST", body: '{"text":"Hello."}' }),
        ...(await heard),
      };
      socket.close();
      return seen;
    },
    [url, token] as const,
  );
}

const REFUSED: Seen = { get: null, post: null, event: null, closeCode: 1006 };
const LET_IN: Seen = { get: 200, post: 404, event: "hello", closeCode: null };

function gatewayWith(settings: Partial<Config>): Promise<TestGateway> {
  return gatewayAt(upstream.url, { keysFile: keys.path, ...settings });
}

const token = () => tokenFor({ ...SPEAKER, allow: [...SPEAKER.allow, "proxy"] });

describe.skipIf(reason !== null)(
  `a page in chromium${reason === null ? "" : ` (skipped: ${reason})`}`,
  () => {
    beforeAll(async () => {
      pages = createServer((_request, response) => {
        response.setHeader("content-type", "text/html").end("<title>Somebody else's page</title>");
      });
      pages.listen(0, "127.0.0.1");
      [browser, upstream] = await Promise.all([
        launchBrowser([
          `--host-resolver-rules=MAP ${PAGE_NAME} 127.0.0.1,MAP ${REBOUND_NAME} 127.0.0.1`,
          // The browser's own guard of this machine's ports is not what is tested.
          "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests",
        ]),
        startFakeUpstream(),
        once(pages, "listening"),
      ]);
    });

    afterAll(async () => {
      await browser?.close();
      pages?.closeAllConnections();
      pages?.close();
      await upstream?.close();
      keys[Symbol.dispose]();
    });

    it("a page of another origin is refused by fetch and WebSocket, whatever it shows, until it is listed", async () => {
      const origin = `http://${PAGE_NAME}:${(pages.address() as AddressInfo).port}`;
      const page = await browser.newPage();
      await page.goto(origin);
      {
        await using gateway = await gatewayWith({});
        expect(await tryAll(page, gateway.url, token())).toEqual(REFUSED);
        expect(await tryAll(page, gateway.url, keys.key)).toEqual(REFUSED);
        expect([gateway.counters.connectionsOpened, upstream.requests.length]).toEqual([0, 0]);
      }
      await using open = await gatewayWith({ allowedOrigins: origin });
      expect(await tryAll(page, open.url, token())).toEqual(LET_IN);
      // Listed is not let in: the token still counts.
      expect(await tryAll(page, open.url, "x.y.z")).toEqual({
        get: 401,
        post: 401,
        event: "error",
        closeCode: null,
      });
      await page.close();
    });

    it("a page of a name that was bound to the gateway's address is refused, until the name is listed", async () => {
      const port = await freePort();
      const page = await browser.newPage();
      const url = `http://${REBOUND_NAME}:${port}`;
      // What the attacker's own server has answered before the name was bound anew.
      await page.route(`${url}/attack`, (route) => {
        return route.fulfill({ contentType: "text/html", body: "<title>Attack</title>" });
      });
      await page.goto(`${url}/attack`);
      {
        await using gateway = await gatewayWith({ port });
        // The page is same-origin to the browser: it reads the refusal, and nothing behind it.
        expect(await tryAll(page, url, token())).toEqual({
          get: 421,
          post: 421,
          event: null,
          closeCode: 1006,
        });
        expect(await page.evaluate(() => fetch("/").then((answer) => answer.status))).toBe(421);
        expect(gateway.counters.connectionsOpened).toBe(0);
      }
      await using open = await gatewayWith({ port, allowedHosts: REBOUND_NAME });
      expect(open.port).toBe(port);
      expect(await tryAll(page, url, token())).toEqual(LET_IN);
      await page.close();
    });
  },
);

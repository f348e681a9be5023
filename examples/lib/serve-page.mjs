// Serves the page of an example: the files that it names from its folder, on loopback, and prints the address to open.
import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import { DATA_HEADERS, PAGE_HEADERS } from "./page-headers.mjs";

const TYPES = { html: "text/html; charset=utf-8", mjs: "text/javascript; charset=utf-8" };

/**
 * `folder`: a file's URL in the example's folder; `files`: all that may be asked for, `index.html` is the page.
 * `port`: where PORT does not say it. `scheme`: what the page takes the gateway's address with, `ws` or `http`.
 */
export function servePage({ folder, files, port, scheme = "ws" }) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://page");
    const name = pathname === "/" ? "index.html" : pathname.slice(1);
    if (!files.includes(name)) {
      response.writeHead(404, DATA_HEADERS).end();
      return;
    }
    response.writeHead(200, { ...PAGE_HEADERS, "content-type": TYPES[name.split(".").at(-1)] });
    createReadStream(new URL(name, folder)).pipe(response);
  });
  server.on("error", (error) => {
    console.error(`Can't serve the page: ${error.message}. Set PORT to another one.`);
    process.exitCode = 1;
  });
  server.listen(Number(process.env.PORT ?? port), "127.0.0.1", () => {
    const gateway = process.env.VOICEWIRE_URL ?? "ws://127.0.0.1:8080";
    const query = new URLSearchParams({ gateway: gateway.replace(/^ws/, scheme) });
    console.log(`http://127.0.0.1:${server.address().port}/?${query}`);
  });
}

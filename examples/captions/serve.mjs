// Serves this folder's page. Start a gateway first (npm start), then:
//   node examples/captions/serve.mjs            and open the address that it prints
//   GATEWAY=http://127.0.0.1:8080 PORT=8091     where the gateway is, and where the page goes
import { createReadStream } from "node:fs";
import { createServer } from "node:http";

const TYPES = { html: "text/html; charset=utf-8", mjs: "text/javascript; charset=utf-8" };
const FILES = ["index.html", "page.mjs", "board.mjs", "clock.mjs", "recording.mjs"];

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? "/", "http://page");
  const name = pathname === "/" ? "index.html" : pathname.slice(1);
  if (!FILES.includes(name)) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { "content-type": TYPES[name.split(".").at(-1)] });
  createReadStream(new URL(name, import.meta.url)).pipe(response);
});
server.listen(Number(process.env.PORT ?? 8091), "127.0.0.1", () => {
  const gateway = process.env.GATEWAY ?? "http://127.0.0.1:8080";
  console.log(`http://127.0.0.1:${server.address().port}/?gateway=${encodeURIComponent(gateway)}`);
});

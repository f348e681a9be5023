// Serves this folder's page. Start a gateway first (npm start), then:
//   node examples/captions/serve.mjs            and open the address that it prints
//   VOICEWIRE_URL=ws://127.0.0.1:8080 PORT=8091     where the gateway is, and where the page goes
import { servePage } from "../lib/serve-page.mjs";

servePage({
  folder: import.meta.url,
  files: ["index.html", "page.mjs", "board.mjs", "clock.mjs", "recording.mjs"],
  port: 8091,
  scheme: "http",
});

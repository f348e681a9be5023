// Serves this folder's page. Start a gateway first (npm start), then:
//   node examples/avatar/serve.mjs            and open the address that it prints
//   VOICEWIRE_URL=ws://127.0.0.1:8080 PORT=8090     where the gateway is, and where the page goes
import { servePage } from "../lib/serve-page.mjs";

servePage({
  folder: import.meta.url,
  files: ["index.html", "avatar.mjs", "face.mjs", "player.mjs", "talking-head.mjs"],
  port: 8090,
});

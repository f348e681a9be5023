// A gateway of the built program as a node on NATS: `node gateway-program.mjs NATS_URL UPSTREAM_URL NAME`. It prints its address.

import { NatsBus } from "../../dist/cluster/bus/nats-bus.js";
import { SETTINGS } from "../../dist/config.js";
import { startGateway } from "../../dist/gateway.js";

const [natsUrl, upstreamBaseUrl, nodeName] = process.argv.slice(2);
const defaults = Object.fromEntries(SETTINGS.map(({ key, default: value }) => [key, value]));
const quiet = () => undefined;
const gateway = await startGateway({
  config: { ...defaults, port: 0, opsPort: "off", voice: "test-voice", trimMs: 0 },
  upstreamBaseUrl,
  upstreamKey: "test-key",
  log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
  cluster: { nodeName, connect: () => NatsBus.connect({ url: natsUrl }) },
});
process.stdout.write(`${gateway.url}\n`);

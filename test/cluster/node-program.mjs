// A node as a process of its own, of the built program: `node node-program.mjs URL NAME`. It prints what happens, a line each;
// "jump MS" on its input moves its wall clock.
import { createInterface } from "node:readline";
import { NatsBus } from "../../dist/cluster/bus/nats-bus.js";
import { NodeRegistry } from "../../dist/cluster/bus/node-registry.js";

const [url, name] = process.argv.slice(2);
const say = (line) => process.stdout.write(`${line}\n`);

const bus = await NatsBus.connect({ url });
bus.onState((state) => say(state));
let count = 0;
await bus.subscribe("flood", () => {
  count += 1;
  if (count === 1) say("flood begins");
});
await bus.answer(`echo.${name}`, (bytes) => bytes);
const registry = await NodeRegistry.join(bus, {
  name,
  facts: { url: `ws://${name}`, load: 0, isDraining: false, buddy: null, machine: "" },
  onReplaced: () => say("replaced"),
}).catch((error) => {
  say(`refused ${error.code}`);
  process.exit(1);
});
registry.onChange((node) => say(`${node.name} ${node.state}`));
say("joined");

createInterface({ input: process.stdin }).on("line", (line) => {
  const [, ms] = line.split(" ");
  const { now } = Date;
  Date.now = () => now() + Number(ms);
  say("jumped");
});

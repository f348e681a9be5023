/** A real gateway process with all its sockets open, and what its metrics say of it. */
import { freePort } from "../../helpers/free-port.ts";
import { ObservedProcess } from "./observed-process.ts";
import type { StreamSurface } from "./surfaces.ts";
import { VOICE } from "./surfaces.ts";

export interface FuzzedGateway extends AsyncDisposable {
  readonly process: ObservedProcess;
  readonly port: number;
  readonly url: string;
  readonly ports: Readonly<Record<Exclude<StreamSurface["port"], "rtp">, number>>;
  /** The value of a metric by its name and labels; NaN where there is none. */
  metric(name: string): Promise<number>;
}

/** `main`: the built program. */
export async function startFuzzedGateway({
  main,
  upstreamUrl,
  args = [],
}: {
  readonly main: string;
  readonly upstreamUrl: string;
  readonly args?: readonly string[];
}): Promise<FuzzedGateway> {
  const ports = { audiosocket: await freePort(), wyoming: await freePort() };
  const program = await ObservedProcess.start({
    main,
    args: [
      ...["serve", "--port", "0", "--upstream-url", upstreamUrl, "--voice", VOICE, "--log-level", "error"],
      ...["--audiosocket-port", String(ports.audiosocket), "--wyoming-port", String(ports.wyoming)],
      // Who has gone is to leave nothing behind; and nothing is kept that would look like growth.
      ...["--grace-ms", "0", "--phrase-cache-mb", "0", ...args],
    ],
    ready: /Page {2}(http:\S+)\//,
  });
  const opsUrl = /http:\S+\/metrics/.exec(program.printed)?.[0] ?? "";
  return {
    process: program,
    url: program.said,
    port: Number(new URL(program.said).port),
    ports,
    metric: async (name) => {
      const text = await (await fetch(opsUrl)).text();
      const line = text.split("\n").find((one) => one.startsWith(`${name} `));
      return Number(line?.split(" ")[1] ?? Number.NaN);
    },
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  };
}

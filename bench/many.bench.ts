/** Many at once on the embedded voice: sessions that begin to speak in the same moment, as their listeners hear them. */
import { type Bench, runBench, speakMessage } from "./kit/bench.ts";
import { Connection } from "./kit/connection.ts";
import { monotonicMs, wait } from "./kit/monotonic.ts";
import { ServedProgram } from "./kit/served-program.ts";
import { percentile } from "./kit/statistics.ts";

const LEAD_MS = 300;
const FRAME_MS = 20;
/** Sessions at once. */
const CROWDS: readonly number[] = [20, 50];
const TARGET_FIRST_FRAME_MS = 400;
const DEADLINE_MS = 120_000;
const READ_BYTES = 65_536;
/** Ten to a session; `{key}` makes them its own. */
const SENTENCES = [
  "Good morning to caller {key}.",
  "Thank you for waiting so long.",
  "Your parcel left the depot at six.",
  "It is on its way to your town now.",
  "The driver has {key} stops before yours.",
  "He will ring the bell twice.",
  "Please have your number at hand.",
  "Somebody has to sign for it.",
  "You can move the date until noon.",
  "Have a pleasant day, caller {key}.",
];

interface Heard {
  /** From `speak` to its first frame. */
  readonly firstFrameMs: number;
  /** Of each later frame against a player that began with the first one. */
  readonly lateMs: readonly number[];
}

runBench(async (bench) => {
  bench.method(
    `\`serve\` with the embedded service. N sessions with a listener each (ulaw_8000, 20 ms, pace realtime, lead ${LEAD_MS} ms) say ${SENTENCES.length} short sentences,`,
    "one `speak` each, all written in the same moment; before that, one session says them alone. First frame: from `speak` to the first frame. Late: a",
    "frame's arrival minus when a player needs it that began with the first frame. Underruns: by the gateway's own counter.",
  );
  await using program = await ServedProgram.start({
    distUrl: bench.options.distUrl,
    workers: 1,
    hasMetrics: true,
  });
  await crowd(program, { label: "warm", sessions: 1, sentences: SENTENCES });
  const sentences = bench.pick(SENTENCES, SENTENCES.slice(0, 2));
  for (const sessions of bench.pick(CROWDS, [4])) {
    for (let round = 1; round <= bench.options.rounds; round += 1) {
      const before = await underruns(program);
      const heard = await crowd(program, { label: `${sessions}-${round}`, sessions, sentences });
      tell(bench, { sessions, heard, underruns: (await underruns(program)) - before });
    }
  }
});

function tell(
  bench: Bench,
  run: { readonly sessions: number; readonly heard: readonly Heard[]; readonly underruns: number },
): void {
  const first = run.heard.map(({ firstFrameMs }) => firstFrameMs);
  const late = run.heard.flatMap(({ lateMs }) => lateMs);
  const p99 = percentile(first, 0.99);
  const rows = [
    {
      figure: `many: ${run.sessions} at once, speak -> first frame, p50 / p99`,
      measured: `${percentile(first, 0.5).toFixed(0)} / ${p99.toFixed(0)} ms`,
      target: `p99 <= ${TARGET_FIRST_FRAME_MS} ms`,
      isOk: p99 <= TARGET_FIRST_FRAME_MS,
    },
    {
      figure: `many: ${run.sessions} at once, later frames late, p99 / most (n=${late.length})`,
      measured: `${percentile(late, 0.99).toFixed(0)} / ${percentile(late, 1).toFixed(0)} ms`,
      target: "",
      isOk: null,
    },
    {
      figure: `many: ${run.sessions} at once, underruns`,
      measured: `${run.underruns}`,
      target: "0",
      isOk: run.underruns === 0,
    },
  ];
  for (const row of rows) bench.row({ ...row, baseline: "", ratio: "" });
}

async function crowd(
  { port }: ServedProgram,
  of: { readonly label: string; readonly sessions: number; readonly sentences: readonly string[] },
): Promise<Heard[]> {
  const readBuffer = new Uint8Array(READ_BYTES);
  const connections = await Promise.all(
    Array.from({ length: of.sessions }, (_, index) =>
      Connection.open({
        port,
        path: `/live/many-${of.label}-${index}?format=ulaw_8000&frame_ms=${FRAME_MS}&pace=realtime&lead_ms=${LEAD_MS}`,
        wantsText: true,
        readBuffer,
        lateness: null,
      }),
    ),
  );
  await wait(500);
  return Promise.all(
    connections.map((connection, index) =>
      listen(connection, of.sentences.join(" ").replaceAll("{key}", String(index + 2))),
    ),
  );
}

/** Resolves when its utterance is over. */
function listen(connection: Connection, text: string): Promise<Heard> {
  const arrivals: number[] = [];
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      connection.close();
      reject(new Error(`A session did not end: ${arrivals.length} frames came`));
    }, DEADLINE_MS);
    connection.onFrame = (atMs) => {
      arrivals.push(atMs);
    };
    connection.onText = (message) => {
      if (!message.includes('"utterance.done"')) return;
      clearTimeout(timer);
      connection.close();
      const [firstMs = Number.NaN] = arrivals;
      resolve({
        firstFrameMs: firstMs - sentMs,
        lateMs: arrivals.slice(1).map((atMs, index) => Math.max(0, atMs - firstMs - (index + 1) * FRAME_MS)),
      });
    };
    const sentMs = monotonicMs();
    connection.send(speakMessage(text, null));
  });
}

async function underruns({ metricsUrl }: ServedProgram): Promise<number> {
  const answer = await fetch(metricsUrl);
  const [, count] = /^voicewire_underruns_total(?:\{[^}]*\})? (\d+)/m.exec(await answer.text()) ?? [];
  if (count === undefined)
    throw new Error("The metrics have no underruns, expected voicewire_underruns_total");
  return Number(count);
}

// LiveKit's own plugin for ElevenLabs, with the gateway as its voice: nothing but its baseURL is changed.
//   npm install --prefix examples/agent       once
//   node examples/agent/livekit.mjs [FILE]    a gateway has to run (npm start); FILE is where the sound goes (livekit.wav)
// VOICEWIRE_URL=ws://127.0.0.1:8080, VOICE=the id of a voice (default: the first one that the gateway has)
import { writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { setTimeout as wait } from "node:timers/promises";

const gateway = (process.env.VOICEWIRE_URL ?? "ws://127.0.0.1:8080").replace(/^ws/, "http");
const file = process.argv[2] ?? "livekit.wav";
/** Where the packages are: a folder with node_modules in it; default this file's own. */
const packages = process.env.PACKAGES ?? import.meta.dirname;
/** What a language model might answer, token by token. */
const TOKENS = [
  "Sure",
  ". I",
  " have",
  " found",
  " two",
  " trains",
  " to",
  " Hamburg",
  ". The",
  " first",
  " one",
  " leaves",
  " at",
  " nine",
  ", and",
  " the",
  " second",
  " one",
  " half",
  " an",
  " hour",
  " later",
  ".",
];
const TOKEN_MS = 30;

class Problem extends Error {}

function load(name) {
  try {
    return createRequire(`${packages}/`)(name);
  } catch (error) {
    if (error.code !== "MODULE_NOT_FOUND") throw error;
    throw new Problem(`${name} is not installed. Install it with: npm install --prefix examples/agent`);
  }
}

async function firstVoice() {
  let answer;
  try {
    answer = await fetch(`${gateway}/v1/voices`);
  } catch {
    throw new Problem(`Can't reach the gateway at ${gateway}. Start one with: npm start`);
  }
  if (!answer.ok) throw new Problem(`The gateway has no voices to choose from: it answered ${answer.status}`);
  const { voices } = await answer.json();
  if (voices.length === 0) throw new Problem("The gateway has no voices");
  return voices[0].voice_id;
}

/** Feeds the tokens and gathers what comes: samples, their rate, and words with their times. */
async function speak(tts) {
  const failed = new Promise((_, reject) => tts.on("error", ({ error }) => reject(error)));
  const stream = tts.stream();
  const feed = async () => {
    for (const token of TOKENS) {
      stream.pushText(token);
      await wait(TOKEN_MS);
    }
    stream.endInput();
  };
  const gather = async () => {
    const heard = { rate: 0, samples: [], words: [] };
    for await (const part of stream) {
      // A symbol tells that the stream is over.
      if (typeof part === "symbol") continue;
      heard.rate = part.frame.sampleRate;
      heard.samples.push(part.frame.data);
      heard.words.push(...(part.timedTranscripts ?? []));
    }
    return heard;
  };
  try {
    const [heard] = await Promise.race([Promise.all([gather(), feed()]), failed]);
    return heard;
  } finally {
    stream.close();
  }
}

/** 16-bit mono samples as a WAV file. */
function wavOf(pieces, rate) {
  const data = Buffer.concat(
    pieces.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength)),
  );
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + data.length, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(rate * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36);
  head.writeUInt32LE(data.length, 40);
  return Buffer.concat([head, data]);
}

async function main() {
  const { initializeLogger } = load("@livekit/agents");
  const { TTS } = load("@livekit/agents-plugin-elevenlabs");
  initializeLogger({ pretty: false, level: "silent" });
  const tts = new TTS({
    baseURL: `${gateway}/v1`,
    // The gateway has its own key for the upstream; the plugin insists on one.
    apiKey: process.env.ELEVEN_API_KEY ?? "not-needed",
    voiceId: process.env.VOICE ?? (await firstVoice()),
    // The plugin takes times as counted from the beginning of the reply: this asks the gateway for such.
    model: "eleven_turbo_v2_5&absolute_times=true",
  });
  try {
    const { rate, samples, words } = await speak(tts);
    if (samples.length === 0) throw new Problem("Nothing was heard");
    await writeFile(file, wavOf(samples, rate));
    for (const { text, startTime } of words) {
      if (text.trim() !== "" && startTime !== undefined)
        console.log(`${startTime.toFixed(3)}  ${text.trim()}`);
    }
    const count = samples.reduce((sum, { length }) => sum + length, 0);
    console.log(`Saved ${file}: ${(count / rate).toFixed(2)} s`);
  } finally {
    await tts.close();
  }
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Problem ? error.message : `Failed: ${error.message}`);
  process.exitCode = 1;
}

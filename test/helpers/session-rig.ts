/**
 * A real session on a fake clock with an upstream that the test speaks for: every request is kept, and the test
 * says what comes back and when. Opus is left out (its encoders are worker threads: see test/wire).
 */
import type { OpusPool } from "../../src/audio/codecs/opus-pool.ts";
import { Pacer } from "../../src/delivery/pacer.ts";
import { BlockPool } from "../../src/kit/block-pool.ts";
import { ByteRoom } from "../../src/kit/byte-room.ts";
import { type Logger, silentLog } from "../../src/kit/log.ts";
import { createCounters } from "../../src/metrics/counters.ts";
import { parseCommand } from "../../src/protocol/commands.ts";
import { type Connection, handleCommand } from "../../src/session/carry-out.ts";
import { parseSettings } from "../../src/session/listener-settings.ts";
import type { SessionSettings } from "../../src/session/session-deps.ts";
import {
  NO_REGISTER,
  type SessionRecorder,
  type SessionRegister,
  Sessions,
} from "../../src/session/sessions.ts";
import { VoiceLoudness } from "../../src/session/voice-loudness.ts";
import type { Aligner } from "../../src/timing/aligner.ts";
import type { Alignment, VoiceSegment } from "../../src/timing/alignment.ts";
import type { Synthesis, SynthesisHandlers, SynthesisRequest, Upstream } from "../../src/upstream/types.ts";
import { FakeClock } from "./fake-clock.ts";
import { MemoryListener } from "./memory-listener.ts";

export class FakeRequest implements Synthesis {
  readonly request: SynthesisRequest;
  readonly handlers: SynthesisHandlers;
  isPaused = false;
  isAborted = false;

  constructor(request: SynthesisRequest, handlers: SynthesisHandlers) {
    this.request = request;
    this.handlers = handlers;
  }

  pause(): void {
    this.isPaused = true;
  }
  resume(): void {
    this.isPaused = false;
  }
  abort(): void {
    this.isAborted = true;
  }

  head(characterCost = 10): void {
    this.handlers.head({ requestId: "r", characterCost });
  }

  chunk(audio: Uint8Array, timing: { alignment?: Alignment; voiceSegments?: VoiceSegment[] } = {}): void {
    this.handlers.chunk({
      audio,
      alignment: timing.alignment ?? null,
      normalizedAlignment: null,
      voiceSegments: timing.voiceSegments ?? [],
    });
  }
}

const noOpus: OpusPool = {
  acquire: () => {
    throw new Error("No Opus in this test");
  },
  close: () => Promise.resolve(),
} as unknown as OpusPool;

export const TEST_SETTINGS: SessionSettings = {
  maxMessageBytes: 65_536,
  maxInboxBytes: 1_048_576,
  maxTextChars: 1000,
  maxDialogueInputs: 10,
  maxQueuedUtterances: 4,
  maxListeners: 3,
  maxLeadMs: 10_000,
  maxConnectionMinutes: 1440,
  maxOutboxBytes: 65_536,
  maxMarks: 3,
  leadMs: 200,
  aheadMs: 2000,
  keepMs: 500,
  graceMs: 1000,
  resumeMs: 5000,
  resumeReachMs: 12_000,
  creditChars: 400,
  stallMs: 500,
  textIdleMs: 5_000,
  firstAudioMs: 0,
  speculateMs: 4000,
  speculateChars: 600,
  nobodyListens: "hold",
  // Scripted audio stays as it is scripted; the tests of splices turn this on.
  trimMs: 0,
  pauseClauseMs: 0,
  pauseSentenceMs: 0,
  pauseParagraphMs: 0,
  languageVoices: new Map(),
  textDefaults: { clean: [], replacements: [] },
  opusBitrateKbps: "64",
  loudnessLufs: 0,
  preparedMs: 60_000,
  model: "",
  captions: "asked",
  captionsMaxCues: 2000,
  captionsKeepMs: 3_600_000,
};

export function createRig(
  settings: Partial<SessionSettings> = {},
  opusPool: OpusPool = noOpus,
  log: Logger = silentLog,
  aligner: Aligner = { open: () => null },
  register: SessionRegister = NO_REGISTER,
  recorderOf: (clock: FakeClock) => SessionRecorder | null = () => null,
) {
  const clock = new FakeClock();
  const requests: FakeRequest[] = [];
  const upstream: Upstream = {
    open(request, handlers) {
      const open = new FakeRequest(request, handlers);
      requests.push(open);
      return open;
    },
  };
  const counters = createCounters();
  const sessions = new Sessions(
    {
      clock,
      pacer: new Pacer(clock),
      upstream,
      opusPool,
      aligner,
      blocks: new BlockPool(),
      log,
      counters,
      settings: { ...TEST_SETTINGS, ...settings },
      loudness: new VoiceLoudness(),
      sounds: new ByteRoom(1_000_000),
      server: "voicewire/test",
      defaultVoice: () => Promise.resolve("default-voice"),
    },
    2,
    () => register,
    recorderOf(clock),
  );
  const join = (query: string, id = "s") => {
    const listener = new MemoryListener();
    const joining = parseSettings(new URLSearchParams(query), { leadMs: 200, maxLeadMs: 10_000 });
    const session = sessions.open(id);
    const participant = session.join(listener, joining);
    return {
      listener,
      session,
      participant,
      send: (message: object) => send({ session, participant }, message),
    };
  };
  return { clock, requests, counters, sessions, join };
}

/** As the edge does it: through the wire form and back, errors thrown. */
function send(from: Connection, message: object): void {
  const { command } = parseCommand(JSON.stringify(message));
  if (command.type === "refresh") throw new Error("The door answers refresh, no session does");
  handleCommand(from, command);
}

/** `ms` of mu-law that counts up, so that no two frames near each other are the same. */
export function countingUlaw(ms: number, from = 0): Uint8Array {
  const bytes = new Uint8Array(ms * 8);
  for (let index = 0; index < bytes.length; index += 1) bytes[index] = (from * 8 + index) % 251;
  return bytes;
}

/** Alignment of `text` at `msPerCharacter` each from `fromMs` on. */
export function evenAlignment(text: string, msPerCharacter: number, fromMs = 0): Alignment {
  const characters = [...text];
  return {
    characters,
    character_start_times_seconds: characters.map((_, index) => (fromMs + index * msPerCharacter) / 1000),
    character_end_times_seconds: characters.map((_, index) => (fromMs + (index + 1) * msPerCharacter) / 1000),
  };
}

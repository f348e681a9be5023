/** A voice pool as a request with faults sees it: its jobs' chunks pass through the faults, and stall where those say so. */
import { parseUpstreamFormat } from "../../audio/formats.ts";
import type { JobOpener } from "../http/speech/delivery.ts";
import type { JobChunk, JobSpec } from "../voice/messages.ts";
import type { Job, JobHandlers } from "../voice/pool.ts";
import { holed, missing, overlapping, ragged, restarting, scaled } from "./alignment-changes.ts";
import type { Fault } from "./fault.ts";
import {
  AlignmentStage,
  type ChunkStage,
  KeepTruthStage,
  LateStage,
  LongStage,
  SizesStage,
} from "./stage.ts";

/** `inner` itself where no fault concerns chunks. */
export function faultyOpener(inner: JobOpener, faults: readonly Fault[]): JobOpener {
  const hasStages = faults.some((fault) => createStage(fault) !== null || fault.kind === "stall");
  if (!hasStages) return inner;
  return {
    open(spec: JobSpec, handlers: JobHandlers): Job {
      const line = new FaultyLine(faults, spec, handlers);
      const job = inner.open(spec, line);
      return {
        acknowledge: (bytes) => job.acknowledge(bytes),
        cancel: () => {
          line.stop();
          job.cancel();
        },
      };
    },
  };
}

function createStage(fault: Fault): ChunkStage | null {
  switch (fault.kind) {
    case "chunks":
      return new SizesStage(fault.sizes);
    case "alignment_late":
      return new LateStage(fault.chunks);
    case "alignment_long":
      return new LongStage(fault.seconds);
    case "alignment_missing":
      return new AlignmentStage(() => missing(fault.every));
    case "alignment_overlap":
      return new AlignmentStage(() => overlapping(fault.characters));
    case "alignment_restart":
      return new AlignmentStage(() => restarting);
    case "alignment_scaled":
      return new AlignmentStage(() => scaled(fault.factor));
    case "alignment_ragged":
      return new AlignmentStage(() => ragged(fault.drop));
    case "alignment_nan":
      return new AlignmentStage(() => holed(fault.every));
    default:
      return null;
  }
}

interface Stall {
  readonly afterBytes: number;
  readonly ms: number;
}

/** The chunks of one job on their way; bounded by the job's credit, for what waits here is not acknowledged. */
class FaultyLine implements JobHandlers {
  readonly #handlers: JobHandlers;
  readonly #stages: readonly ChunkStage[];
  readonly #stalls: Stall[];
  #queue: JobChunk[] = [];
  #isComplete = false;
  #isStopped = false;
  #sentBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(faults: readonly Fault[], spec: JobSpec, handlers: JobHandlers) {
    this.#handlers = handlers;
    const stages = faults.map(createStage).filter((stage) => stage !== null);
    this.#stages = spec.wantsTruth ? [new KeepTruthStage(), ...stages] : stages;
    const bytesPerMs = bytesPerMsOf(spec.format);
    this.#stalls = faults
      .filter((fault) => fault.kind === "stall")
      .map((fault) => ({ afterBytes: fault.after_ms_of_audio * bytesPerMs, ms: fault.ms }));
  }

  chunk(chunk: JobChunk): void {
    this.#enqueue([chunk], 0);
    this.#send();
  }

  done(): void {
    // What a stage held back goes through the stages behind it.
    for (const [index, stage] of this.#stages.entries()) this.#enqueue(stage.end(), index + 1);
    this.#isComplete = true;
    this.#send();
  }

  failed(error: Parameters<JobHandlers["failed"]>[0]): void {
    this.stop();
    this.#handlers.failed(error);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #enqueue(chunks: readonly JobChunk[], fromStage: number): void {
    let passed = chunks;
    for (const stage of this.#stages.slice(fromStage)) passed = passed.flatMap((chunk) => stage.push(chunk));
    this.#queue.push(...passed);
  }

  #send(): void {
    if (this.#timer !== undefined) return;
    const queue = this.#queue;
    for (const [index, chunk] of queue.entries()) {
      if (this.#isStopped) return;
      if (this.#stallIfDue()) {
        this.#queue = queue.slice(index);
        return;
      }
      this.#sentBytes += chunk.audio.length;
      this.#handlers.chunk(chunk);
    }
    this.#queue = [];
    if (this.#isComplete && !this.#isStopped && !this.#stallIfDue()) {
      this.#isStopped = true;
      this.#handlers.done();
    }
  }

  #stallIfDue(): boolean {
    const index = this.#stalls.findIndex((stall) => stall.afterBytes <= this.#sentBytes);
    const [stall] = index < 0 ? [] : this.#stalls.splice(index, 1);
    if (stall === undefined) return false;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#send();
    }, stall.ms);
    return true;
  }
}

/** Bytes of a millisecond of encoded audio; by its bit rate where it is compressed. */
function bytesPerMsOf(name: string): number {
  const format = parseUpstreamFormat(name);
  if (format === undefined) return 1;
  if (format.bitrateKbps !== null) return format.bitrateKbps / 8;
  return (format.sampleRate / 1000) * (format.codec === "ulaw" || format.codec === "alaw" ? 1 : 2);
}

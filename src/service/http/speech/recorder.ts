/**
 * Keeps a generation for the history while it is delivered: its audio goes to a file piece by piece, and when it is whole
 * the item is written, before the client sees the end. What the client gave up is not kept.
 */
import type { Logger } from "../../../kit/log.ts";
import type { NewHistoryItem } from "../../store/history.ts";
import type { MediaWriter } from "../../store/media.ts";
import type { Store } from "../../store/store.ts";
import type { JobSpec } from "../../voice/messages.ts";
import type { Job, JobHandlers } from "../../voice/pool.ts";
import type { JobOpener } from "./delivery.ts";
import { GatheredTiming } from "./timing-json.ts";

export interface RecordingOptions {
  readonly store: Store;
  readonly log: Logger;
  /** Everything but what is known only at the end. */
  readonly item: Omit<NewHistoryItem, "alignmentsJson">;
}

/** The opener of one generation; with a disk that can't keep up its client waits, with one that fails it does not. */
export function recordingOpener(opener: JobOpener, options: RecordingOptions): JobOpener {
  const { store, log, item } = options;
  const timing = new GatheredTiming();
  let writer: MediaWriter | null = null;
  let isFailed = false;
  const fail = async (thrown: unknown): Promise<void> => {
    if (isFailed) return;
    isFailed = true;
    log.error({ item: item.id, error: messageOf(thrown) }, "A generation could not be kept");
    await writer?.abort();
  };
  let tail: Promise<void> = Promise.resolve();
  const then = (step: () => Promise<void>): Promise<void> => {
    tail = tail.then(async () => {
      if (!isFailed) await step().catch(fail);
    });
    return tail;
  };
  const keep = async (): Promise<void> => {
    if (writer === null || writer.bytes === 0) return;
    const media = await writer.finish();
    const { whole } = timing;
    store.history.add({ ...item, alignmentsJson: whole === null ? null : JSON.stringify(whole) }, media);
  };
  return {
    open: (spec, handlers) => {
      let isOver = false;
      void then(async () => {
        writer = await store.media.writer();
      });
      const started = tryOpen(opener, spec, {
        chunk: (chunk) => {
          if (chunk.timing !== null) timing.add(chunk.timing);
          // Copied: the response's own bytes may be handed on.
          const bytes = chunk.audio.slice();
          void then(async () => writer?.write(bytes));
          handlers.chunk(chunk);
        },
        done: () => {
          isOver = true;
          void then(keep).then(() => handlers.done());
        },
        failed: (error) => {
          isOver = true;
          void then(async () => writer?.abort());
          handlers.failed(error);
        },
      });
      if (started.job === null) {
        void then(async () => writer?.abort());
        throw started.thrown;
      }
      const { job } = started;
      return {
        acknowledge: (bytes) => void tail.then(() => job.acknowledge(bytes)),
        cancel: () => {
          job.cancel();
          if (!isOver) void then(async () => writer?.abort());
          isOver = true;
        },
      };
    },
  };
}

type Started = { readonly job: Job } | { readonly job: null; readonly thrown: unknown };

/** A pool that takes no more says so by throwing. */
function tryOpen(opener: JobOpener, spec: JobSpec, handlers: JobHandlers): Started {
  try {
    return { job: opener.open(spec, handlers) };
  } catch (thrown) {
    return { job: null, thrown };
  }
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** What `serve` and its workers send each other over IPC; one forks the other, so neither is checked. */
import type { Config } from "../../../config.ts";
import type { ErrorCode } from "../../../errors.ts";
import type { GatewayState } from "../../../gateway.ts";
import type { LiveView, OpenedSession } from "../../../protocol/live-view.ts";
import type { Look, OpenLook } from "../../../server/live-view/live-source.ts";
import type { ServiceConfig } from "../../../upstream/services/service-config.ts";
import type { VoiceConfig } from "../../../upstream/voices/voice-config.ts";
import type { BaseUrl } from "../upstream.ts";

/** How a worker starts its gateway. */
export interface WorkerStart {
  readonly type: "start";
  /** 1 is the first. */
  readonly worker: number;
  /** Its name among the nodes of the machine, or of the cluster. */
  readonly nodeName: string;
  /** This worker's own share of it. */
  readonly config: Config;
  /** The one speech service that all workers have. */
  readonly upstream: { readonly baseUrl: BaseUrl; readonly key: string; readonly passesFaults: boolean };
  /** Other speech services: this worker's own share. */
  readonly services: readonly ServiceConfig[];
  /** Voices of one's own. */
  readonly voices: readonly VoiceConfig[];
}

/** Answered with the same id. */
export type Question =
  | { readonly type: "metrics"; readonly id: number }
  | { readonly type: "look"; readonly id: number; readonly look: Look }
  | { readonly type: "open"; readonly id: number; readonly look: OpenLook };

export type Answer =
  | { readonly type: "metrics"; readonly id: number; readonly text: string }
  | { readonly type: "look"; readonly id: number; readonly view: LiveView }
  | { readonly type: "open"; readonly id: number; readonly opened: OpenedSession | null };

export type ToWorker =
  | WorkerStart
  | { readonly type: "ping" }
  | Question
  /** Take nothing new, and say when speech has ended. */
  | { readonly type: "settle" }
  | { readonly type: "close" };

/** One of the first two once. */
export type FromWorker =
  | { readonly type: "listening" }
  | { readonly type: "failed"; readonly code: ErrorCode; readonly message: string }
  | { readonly type: "pong"; readonly state: GatewayState }
  | Answer
  /** Also where the worker alone was asked to end, by a signal. */
  | { readonly type: "settled" };

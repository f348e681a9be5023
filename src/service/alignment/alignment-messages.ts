/** What a gateway and its alignment thread say to each other of a response. Plain data only. */
import type { FoundWord } from "../../timing/aligner.ts";

export type ToAlignment =
  | {
      readonly type: "open";
      readonly text: string;
      readonly language: string | null;
      readonly format: string;
    }
  | { readonly type: "audio"; readonly bytes: Uint8Array<ArrayBuffer> }
  /** `isWanted` false: nobody waits for what is left. */
  | { readonly type: "end"; readonly isWanted: boolean };

export type FromAlignment =
  /** `bytes`: of audio that was looked at and waits no more. */
  | { readonly type: "found"; readonly words: readonly FoundWord[]; readonly bytes: number }
  | { readonly type: "ended"; readonly isLike: boolean };

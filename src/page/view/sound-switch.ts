/** Gets the loudspeaker opened by a gesture, as browsers want it, and offers a button where one is missing. */

import type { AudioEngine } from "../sound/audio-engine.ts";
import { byId } from "./dom.ts";

export interface SoundSwitchOptions {
  readonly engine: AudioEngine;
  /** A listener's tab keeps silent until its button is pressed. */
  readonly isListener: boolean;
  readonly onFault: (error: unknown) => void;
}

export class SoundSwitch {
  readonly #options: SoundSwitchOptions;
  readonly #button = byId("sound", HTMLButtonElement);

  constructor(options: SoundSwitchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#button.addEventListener("click", () => this.unlock());
    this.show(false);
    if (this.#options.isListener) return;
    // Opening takes a moment: the first touch of anything gets it ready for Speak.
    for (const gesture of ["click", "keydown"])
      addEventListener(gesture, () => this.unlock(), { once: true });
  }

  /** Call it from a gesture. Without a loudspeaker the words still light: that is said, and no reason to stop. */
  async unlock(): Promise<void> {
    await this.#options.engine.unlock().catch(this.#options.onFault);
    if (this.#options.engine.isUnlocked) this.#button.hidden = true;
  }

  /** The button shows where sound is wanted and not allowed yet: a listener's tab, or another tab's speech. */
  show(isSpeaking: boolean): void {
    this.#button.hidden = this.#options.engine.isUnlocked || !(isSpeaking || this.#options.isListener);
  }
}

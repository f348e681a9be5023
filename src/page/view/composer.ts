/** The form: a text with a voice, or a dialogue of lines with a voice each; hands out what to say. */
import type { Cleaning } from "../../protocol/vocabulary.ts";
import { type Catalog, NO_CATALOG, type Voice } from "../catalog.ts";
import { EXAMPLES, type Example } from "../speech/examples.ts";
import { STREAMS, type TimedToken } from "../speech/streams.ts";
import { DialogueLines } from "./dialogue-lines.ts";
import { byId, make } from "./dom.ts";
import { fillVoices } from "./voice-select.ts";

interface Choice {
  readonly model_id?: string;
  readonly language_code?: string;
}

interface VoiceChoice extends Choice {
  readonly voice_id?: string;
  readonly voice_settings?: { readonly speed: number };
}

/** What a model writes for the eye. */
const UNSPOKEN: readonly Cleaning[] = ["markdown", "emoji", "urls", "code"];

type Mode = "text" | "stream" | "dialogue";

export type Request =
  | {
      readonly kind: "text";
      readonly text: string;
      readonly areTokens: boolean;
      readonly options: VoiceChoice;
    }
  | {
      /** Tokens of a language model, at the model's own pace. */
      readonly kind: "stream";
      readonly tokens: readonly TimedToken[];
      readonly options: VoiceChoice & { readonly clean: readonly Cleaning[] };
    }
  | {
      readonly kind: "dialogue";
      readonly inputs: readonly { readonly text: string; readonly voice_id: string }[];
      readonly options: Choice;
    };

export interface ComposerHandlers {
  speak(request: Request): void;
  stop(): void;
  resume(): void;
}

export class Composer {
  readonly #form = byId("composer", HTMLFormElement);
  readonly #text = byId("text", HTMLTextAreaElement);
  readonly #voice = byId("voice", HTMLSelectElement);
  readonly #model = byId("model", HTMLSelectElement);
  readonly #language = byId("language", HTMLSelectElement);
  readonly #speed = byId("speed", HTMLInputElement);
  readonly #tokens = byId("tokens", HTMLInputElement);
  readonly #stream = byId("stream", HTMLSelectElement);
  readonly #stop = byId("stop", HTMLButtonElement);
  readonly #resume = byId("resume", HTMLButtonElement);
  readonly #speak = byId("speak", HTMLButtonElement);
  readonly #lines = new DialogueLines();
  readonly #handlers: ComposerHandlers;
  #catalog: Catalog = NO_CATALOG;

  constructor(handlers: ComposerHandlers) {
    this.#handlers = handlers;
    this.#form.addEventListener("submit", (event) => this.#formOnSubmit(event));
    this.#form.addEventListener("change", () => this.#showMode());
    this.#stop.addEventListener("click", () => handlers.stop());
    this.#resume.addEventListener("click", () => handlers.resume());
    this.#stream.replaceChildren(...STREAMS.map((stream, index) => new Option(stream.name, String(index))));
    this.#stream.addEventListener("change", () => this.#showStream());
    this.#speed.addEventListener("input", () => this.#showSpeed());
    this.#model.addEventListener("change", () => this.#fillLanguages());
    document.addEventListener("keydown", (event) => this.#documentOnKeydown(event));
    byId("examples", HTMLElement).replaceChildren(...EXAMPLES.map((example) => this.#exampleButton(example)));
    this.#text.value = EXAMPLES[0]?.text ?? "";
    this.#showMode();
    this.#showSpeed();
    this.#showStream();
  }

  /** Fills the choices; what was chosen before stays chosen where it still exists. */
  offer(catalog: Catalog): void {
    this.#catalog = catalog;
    fillVoices(this.#voice, catalog.voices);
    this.#lines.offer(catalog.voices);
    const models = catalog.models.map((model) => new Option(model.name, model.id));
    this.#model.replaceChildren(new Option("The gateway's own", ""), ...models);
    this.#fillLanguages();
    this.#showMode();
  }

  setSpeakable(isSpeakable: boolean): void {
    this.#speak.disabled = !isSpeakable;
  }

  setStoppable(isStoppable: boolean): void {
    this.#stop.disabled = !isStoppable;
  }

  setResumable(isResumable: boolean): void {
    if (this.#resume.hidden !== isResumable) return;
    // Who has just used it goes on with the keyboard from its neighbour.
    if (!isResumable && document.activeElement === this.#resume) this.#speak.focus();
    this.#resume.hidden = !isResumable;
  }

  hide(): void {
    this.#form.hidden = true;
  }

  show(): void {
    this.#form.hidden = false;
  }

  get #mode(): Mode {
    const mode = new FormData(this.#form).get("mode");
    return mode === "dialogue" || mode === "stream" ? mode : "text";
  }

  #formOnSubmit(event: SubmitEvent): void {
    event.preventDefault();
    const mode = this.#mode;
    const request =
      mode === "dialogue" ? this.#dialogue() : mode === "stream" ? this.#streamed() : this.#speech();
    if (request === null) (mode === "dialogue" ? this.#lines : this.#text).focus();
    else this.#handlers.speak(request);
  }

  #speech(): Request | null {
    const text = this.#text.value;
    if (text.trim() === "") return null;
    return { kind: "text", text, areTokens: this.#tokens.checked, options: this.#voiceChoice() };
  }

  #streamed(): Request | null {
    const stream = STREAMS[this.#stream.selectedIndex];
    if (stream === undefined) return null;
    return { kind: "stream", tokens: stream.tokens, options: { ...this.#voiceChoice(), clean: UNSPOKEN } };
  }

  #voiceChoice(): VoiceChoice {
    const speed = Number(this.#speed.value);
    return {
      ...this.#choice([this.#voice.value]),
      ...(this.#voice.value === "" ? {} : { voice_id: this.#voice.value }),
      ...(speed === 1 ? {} : { voice_settings: { speed } }),
    };
  }

  #dialogue(): Request | null {
    const inputs = this.#lines.inputs;
    return inputs.length === 0
      ? null
      : { kind: "dialogue", inputs, options: this.#choice(inputs.map(({ voice_id }) => voice_id)) };
  }

  #choice(voiceIds: readonly string[]): Choice {
    const hasModel = this.#model.value !== "" && this.#mayHaveModel(voiceIds);
    return {
      ...(hasModel ? { model_id: this.#model.value } : {}),
      ...(this.#language.value === "" ? {} : { language_code: this.#language.value }),
    };
  }

  /** The models are the first upstream's: a service's voice has its own. */
  #mayHaveModel(voiceIds: readonly string[]): boolean {
    return !this.#catalog.voices.some(({ id, service }) => service !== null && voiceIds.includes(id));
  }

  #documentOnKeydown(event: KeyboardEvent): void {
    if (event.isComposing) return;
    if (event.key === "Escape" && !this.#stop.disabled) {
      event.preventDefault();
      this.#handlers.stop();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !this.#form.hidden) {
      event.preventDefault();
      if (!this.#speak.disabled) this.#form.requestSubmit();
    }
  }

  #showMode(): void {
    const mode = this.#mode;
    byId("text-panel", HTMLElement).hidden = mode !== "text";
    byId("stream-panel", HTMLElement).hidden = mode !== "stream";
    byId("dialogue-panel", HTMLElement).hidden = mode !== "dialogue";
    byId("voice-panel", HTMLElement).hidden = mode === "dialogue";
    byId("tokens-field", HTMLElement).hidden = mode !== "text";
    const voiceIds =
      mode === "dialogue" ? this.#lines.inputs.map(({ voice_id }) => voice_id) : [this.#voice.value];
    this.#model.disabled = !this.#mayHaveModel(voiceIds);
  }

  /** What will be said, and how fast it is written. */
  #showStream(): void {
    const stream = STREAMS[this.#stream.selectedIndex];
    if (stream === undefined) return;
    const { tokens, language } = stream;
    const seconds = ((tokens.at(-1)?.atMs ?? 0) / 1000).toFixed(1);
    byId("stream-text", HTMLElement).textContent = tokens.map((token) => token.text).join("");
    byId("stream-facts", HTMLElement).textContent = `${tokens.length} tokens in ${seconds} s`;
    if (this.#catalog.voices.length > 0 && this.#mode === "stream") this.#chooseLanguage(language);
  }

  #showSpeed(): void {
    byId("speed-value", HTMLOutputElement).value = `${Number(this.#speed.value).toFixed(2)}×`;
  }

  #fillLanguages(): void {
    const { models } = this.#catalog;
    const chosen = this.#language.value;
    const model = models.find((entry) => entry.id === this.#model.value) ?? models[0];
    const languages = [...(model?.languages ?? [])].sort((a, b) => a.name.localeCompare(b.name));
    this.#language.replaceChildren(
      new Option("The voice's own", ""),
      ...languages.map((language) => new Option(language.name, language.id)),
    );
    this.#language.value = languages.some((language) => language.id === chosen) ? chosen : "";
  }

  #exampleButton(example: Example): HTMLElement {
    const button = make("button", {
      class: "chip",
      text: example.name,
      attributes: { type: "button", title: `Example: ${example.about}` },
    });
    button.addEventListener("click", () => {
      this.#text.value = example.text;
      this.#chooseLanguage(example.language);
      this.#text.focus();
    });
    return button;
  }

  /** A voice that speaks the language by itself, else the chosen one, asked to speak it. */
  #chooseLanguage(language: string): void {
    const { voices } = this.#catalog;
    const speaksIt = (voice: Voice | undefined) => voice?.language === language;
    this.#language.value = "";
    if (speaksIt(voices.find((voice) => voice.id === this.#voice.value))) return;
    const native = voices.find(speaksIt);
    if (native !== undefined) this.#voice.value = native.id;
    else if (language !== "en") this.#language.value = language;
    if (this.#language.selectedIndex < 0) this.#language.value = "";
  }
}

/** The page as a whole: ties the connection, the sound and what is shown together. */
import type { Connection } from "../client/index.ts";
import { recovered } from "../client/index.ts";
import type { ErrorBody, HelloEvent, UtteranceDoneEvent } from "../protocol/events.ts";
import { type Catalog, loadCatalog, NO_CATALOG, plainName } from "./catalog.ts";
import { GatewayLink, type LinkState } from "./gateway-link.ts";
import { joinSession } from "./join.ts";
import { type Route, tokenCommand } from "./route.ts";
import { AudioEngine } from "./sound/audio-engine.ts";
import { Captions } from "./speech/captions.ts";
import { Resumable } from "./speech/resumable.ts";
import { Speech } from "./speech/speech.ts";
import { type Lit, Transcript } from "./speech/transcript.ts";
import { rowOf } from "./speech/waterfall.ts";
import { CaptionBar } from "./view/caption-bar.ts";
import { Composer, type Request } from "./view/composer.ts";
import { Notices } from "./view/notices.ts";
import {
  expiringInPlainWords,
  inPlainWords,
  tokenInPlainWords,
  waitingInPlainWords,
  warningInPlainWords,
} from "./view/plain-words.ts";
import { SoundSwitch } from "./view/sound-switch.ts";
import { Stage } from "./view/stage.ts";
import { showFacts, showPresence, statusOf } from "./view/status.ts";
import { TokenForm } from "./view/token-form.ts";
import { WaterfallView } from "./view/waterfall-view.ts";
import { WaveView } from "./view/wave-view.ts";

/** How often the gateway gets to know what was played, and the figures under the waveform are renewed. */
const TICK_MS = 250;

export class App {
  readonly transcript = new Transcript();
  readonly engine: AudioEngine;
  readonly link: GatewayLink;
  readonly #route: Route;
  readonly #notices = new Notices();
  readonly #tokenForm: TokenForm;
  readonly #composer: Composer;
  readonly #speech: Speech;
  readonly #stage: Stage;
  readonly #wave: WaveView;
  readonly #waterfall = new WaterfallView();
  readonly #captions = new Captions();
  readonly #captionBar = new CaptionBar();
  readonly #resumable = new Resumable(() => this.#connection?.hello.limits.resume_ms ?? 0);
  readonly #sound: SoundSwitch;
  #catalog: Catalog = NO_CATALOG;
  #epoch: string | null = null;
  #ackedMs = 0;
  /** The latest joining was without what had been under way. */
  #hasLost = false;
  /** In memory only; null: none was given. */
  #token: string | null;
  /** We are to listen to a session that nobody has opened yet. */
  #isAwaited = false;
  /** The connection that our handlers are on: one that comes back has them still. */
  #attached: Connection | null = null;

  constructor(route: Route, token: string | null) {
    this.#route = route;
    this.#token = token;
    this.#tokenForm = new TokenForm((text) => this.useToken(text));
    this.engine = new AudioEngine({ isWasmForced: route.isWasmForced });
    this.#sound = new SoundSwitch({
      engine: this.engine,
      isListener: route.isListener,
      onFault: (error) => this.#showFault("This browser does not let the page make a sound.", error),
    });
    this.#stage = new Stage({
      voiceName: (voiceId) => this.#voiceName(voiceId),
      isListener: route.isListener,
    });
    this.#wave = new WaveView(this.engine.wave);
    this.#speech = new Speech({
      transcript: this.transcript,
      engine: this.engine,
      onChange: (utterance) => this.#stage.touch(utterance),
    });
    this.#composer = new Composer({
      speak: (request) => this.#speak(request),
      stop: () => this.#stop(),
      resume: () => this.#resume(),
    });
    if (route.isListener) this.#composer.hide();
    this.link = new GatewayLink({
      open: () => joinSession(route, this.#token),
      onState: (state) => this.#linkOnState(state),
    });
  }

  start(): void {
    this.#sound.start();
    addEventListener("online", () => this.link.retryNow());
    this.engine
      .start()
      .catch((error: unknown) => this.#showFault("This browser can't decode the sound.", error));
    this.link.start();
    setInterval(() => this.#tick(), TICK_MS);
    const frame = () => {
      this.#draw();
      requestAnimationFrame(frame);
    };
    frame();
  }

  /** Goes on with another token, or joins with it. */
  useToken(token: string): void {
    const connection = this.#connection;
    if (connection === null) {
      this.#token = token;
      this.link.retryNow();
      return;
    }
    // A refusal comes as an `error` event, too: it is shown as one.
    connection.refresh(token).then(
      () => {
        this.#token = token;
        this.#tokenForm.hide();
      },
      () => undefined,
    );
  }

  get lit(): Lit | null {
    return this.transcript.litAt(this.engine.positionMs);
  }

  /** The caption of what is heard. */
  get captionLines(): readonly string[] {
    return this.isSpeaking ? this.#captions.at(this.engine.positionMs) : [];
  }

  /** Something is queued, speaking, or still to be heard. */
  get isSpeaking(): boolean {
    return this.engine.aheadMs > 0 || this.transcript.utterances.some((utterance) => !utterance.isOver);
  }

  /** The connection while commands can be sent on it. */
  get #connection(): Connection | null {
    const { state } = this.link;
    return state.kind === "open" && state.connection.isOpen ? state.connection : null;
  }

  #linkOnState(state: LinkState): void {
    this.#composer.setSpeakable(state.kind === "open");
    if (state.kind === "open") this.#joined(state.connection);
    else this.#speech.disconnected();
    if (state.kind === "waiting" || state.kind === "ended") {
      for (const utterance of this.transcript.loseTrack()) this.#stage.touch(utterance);
    }
    if (state.kind === "waiting") {
      this.#isAwaited = state.error?.code === "unknown_session";
      const plain = waitingInPlainWords(state);
      if (plain !== null) this.#notices.alert(plain, () => this.link.retryNow());
    }
    if (state.kind === "ended") this.#showEnd(state.error);
    this.#showStatus();
  }

  #showEnd(error: { readonly code: string; readonly message: string }): void {
    const wanted = tokenInPlainWords(error.code, this.#token !== null);
    if (wanted === null) {
      this.#showError(error, () => this.link.retryNow());
      return;
    }
    this.#notices.clearAlert();
    this.#tokenForm.show(wanted, this.#token === null ? tokenCommand(this.#route) : null);
  }

  #joined(connection: Connection): void {
    this.#isAwaited = false;
    this.#notices.clearAlert();
    this.#tokenForm.hide();
    // A token may be good for listening alone.
    if (connection.hello.settings.role === "listener") this.#composer.hide();
    else if (!this.#route.isListener) this.#composer.show();
    this.#giveUpLost(connection.hello);
    this.#sync(connection.hello);
    if (this.#catalog.voices.length === 0) this.#loadCatalog();
    if (connection === this.#attached) return;
    this.#attached = connection;
    this.#attach(connection);
  }

  #attach(connection: Connection): void {
    connection.onAudio((packet, { atMs }) => {
      if (this.#speech.isStopping) return;
      this.engine.latency.frame(atMs + (connection.audio?.frame_ms ?? 0), performance.now());
      this.engine.frame(packet, atMs);
    });
    connection.on("utterance.queued", (event) => this.transcript.queued(event));
    connection.on("utterance.started", (event) => {
      this.engine.expectStart();
      this.engine.latency.started(event.utterance_id, event.start_ms);
      this.#stage.touch(this.transcript.started(event.utterance_id, event.start_ms));
      this.#sound.show(true);
    });
    connection.on("words", (event) => this.#stage.touch(this.transcript.words(event)));
    connection.on("characters", (event) => this.#stage.touch(this.transcript.characters(event)));
    connection.on("segment", (event) => this.#stage.touch(this.transcript.segment(event)));
    connection.on("interrupted", (event) => {
      // Another tab may have stopped it: what is buffered here must not be played either.
      const isAudible = event.heard.ms > 0 || this.transcript.find(event.utterance_id)?.startMs != null;
      if (isAudible && !this.#speech.isStopping) this.engine.silence();
      this.#speech.stopped();
      this.#captions.cut(event);
      this.#resumable.take(event, performance.now());
      this.#stage.touch(this.transcript.interrupted(event));
    });
    connection.on("utterance.resumed", (event) => {
      this.engine.expectStart();
      this.#resumable.take(event, performance.now());
      this.#stage.touch(this.transcript.resumed(event));
    });
    connection.on("cue", (event) => this.#captions.add(event));
    connection.on("presence", (event) => showPresence(event));
    connection.on("utterance.done", (event) => this.#done(event));
    connection.on("error", (event) => this.#showError(event));
    connection.on("warning", (event) => {
      if (event.code === "token_expiring") {
        this.#tokenForm.show(expiringInPlainWords(event.expires_in_ms ?? 0), null);
        return;
      }
      const again = recovered(event);
      if (again !== null) this.#stage.touch(this.transcript.recovered(again));
      // Where nothing was under way, joining again is no news.
      if (event.code === "resume_refused" && !this.#hasLost) return;
      const plain = warningInPlainWords(event);
      if (plain !== null) this.#notices.alert(plain);
    });
  }

  /** A connection that goes on where it was gets to know how it went; any other one does not. */
  #giveUpLost({ resumed }: HelloEvent): void {
    const lost = resumed === true ? [] : this.transcript.giveUp(this.engine.positionMs);
    for (const utterance of lost) this.#stage.touch(utterance);
    this.#hasLost = lost.length > 0;
  }

  /** The same epoch goes on where it was; another one is another timeline. */
  #sync(hello: HelloEvent): void {
    if (hello.epoch === this.#epoch) return;
    this.#epoch = hello.epoch;
    this.transcript.forgetTimes();
    this.#captions.clear();
    this.#resumable.clear();
    const startMs = hello.audio?.start_ms ?? hello.at_ms;
    this.#ackedMs = startMs;
    this.engine.restart(startMs);
  }

  #done(event: UtteranceDoneEvent): void {
    const utterance = this.transcript.done(event);
    this.#stage.touch(utterance);
    if (event.error !== undefined) this.#showError(event.error);
    const browser = this.engine.latency.take(event.utterance_id);
    // One that goes on after a stop has had its row then.
    if (event.latency === null || utterance.resumedMs.length > 0) return;
    const { latency: gateway, segments } = event;
    this.#waterfall.add(rowOf({ text: utterance.text, gateway, segments, browser, ahead: utterance.ahead }));
  }

  async #speak(request: Request): Promise<void> {
    this.#notices.clearAlert();
    await this.#sound.unlock();
    const connection = this.#connection;
    if (connection !== null) this.#speech.speak(connection, request);
    this.#showStatus();
  }

  #stop(): void {
    const connection = this.#connection;
    if (connection !== null) this.#speech.stop(connection);
    this.#showStatus();
  }

  async #resume(): Promise<void> {
    const connection = this.#connection;
    const id = this.#resumable.idAt(performance.now());
    if (connection === null || id === null) return;
    this.#notices.clearAlert();
    if (!(await this.#speech.resume(connection, id))) this.#resumable.clear();
    this.#showStatus();
  }

  #tick(): void {
    const positionMs = this.engine.positionMs;
    if (this.engine.isUnlocked && positionMs > this.#ackedMs) {
      this.#ackedMs = positionMs;
      // Rounded down: a rounding error beyond the last sample would claim more than was sent.
      this.#connection?.played({ at_ms: Math.floor(positionMs) });
    }
    showFacts(this.engine);
    this.#showStatus();
  }

  #draw(): void {
    const { lit, transcript } = this;
    this.#stage.draw(transcript.utterances, lit);
    this.#captionBar.draw(this.captionLines);
    this.#wave.draw({
      positionMs: this.engine.positionMs,
      litWord: lit?.isSounding === true ? lit.word : null,
      wordsBetween: (fromMs, toMs) => transcript.wordsBetween(fromMs, toMs),
    });
  }

  #showStatus(): void {
    const { state } = this.link;
    this.#composer.setStoppable(state.kind === "open" && this.isSpeaking);
    const isResumable = this.#resumable.idAt(performance.now()) !== null;
    this.#composer.setResumable(state.kind === "open" && !this.isSpeaking && isResumable);
    const waiting = this.transcript.utterances.filter((utterance) => utterance.state === "queued").length;
    const { kind, text } = statusOf(state, {
      isSpeaking: this.isSpeaking,
      waiting,
      isListener: this.#route.isListener,
      isAwaited: this.#isAwaited,
    });
    this.#notices.status(kind, text);
  }

  #showError(
    error: Pick<ErrorBody, "code" | "message" | "field">,
    onRetry: (() => void) | null = null,
  ): void {
    const plain = inPlainWords(error);
    if (plain !== null) this.#notices.alert(plain, onRetry);
  }

  #showFault(what: string, error: unknown): void {
    this.#notices.alert({ what, advice: error instanceof Error ? error.message : String(error) });
  }

  #loadCatalog(): void {
    loadCatalog(this.#token).then(
      (catalog) => {
        this.#catalog = catalog;
        this.#composer.offer(catalog);
        if (catalog.gap !== null) this.#notices.alert(catalog.gap);
      },
      (error: unknown) => this.#showFault("The voices could not be loaded.", error),
    );
  }

  #voiceName(voiceId: string): string {
    const voice = this.#catalog.voices.find(({ id }) => id === voiceId);
    if (voice === undefined) return plainName(voiceId);
    return voice.service === null ? voice.name : `${voice.name} (${voice.service})`;
  }
}

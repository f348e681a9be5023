/** What the tests do with the page: open it, look at it, wait for it. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import type { PageState } from "../../src/page/debug-hook.ts";

/** One look at the page: its debug hook, and the word that is lit in the document. */
export interface Seen extends PageState {
  readonly litText: string | null;
}

export interface OpenPage {
  readonly page: Page;
  /** Errors of scripts and violations of the content security policy so far. */
  readonly faults: readonly string[];
}

/** Opens the page and waits until it is connected and knows the voices. */
export async function openPage(
  browser: Browser,
  where: { url: string; options?: BrowserContextOptions },
): Promise<OpenPage> {
  const context = await browser.newContext(where.options ?? {});
  const page = await context.newPage();
  await listenIn(page);
  page.setDefaultTimeout(15_000);
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    // The browser reports a dropped socket as an error of its own; tests drop sockets on purpose.
    if (message.type() === "error" && !message.text().includes("WebSocket")) faults.push(message.text());
  });
  await page.goto(where.url);
  await page.waitForFunction(() => window.voicewire?.state === "open" && window.voicewire.decoder !== null);
  await page.waitForFunction(
    () => (document.querySelector<HTMLSelectElement>("#voice")?.options.length ?? 0) > 0,
  );
  return { page, faults };
}

/** Both in one turn of the page's own loop, right after it has drawn. */
export function see(page: Page): Promise<Seen> {
  return page.evaluate(
    () =>
      new Promise<Seen>((resolve, reject) => {
        // The frame that runs now was asked for before ours: the page has drawn when we look.
        requestAnimationFrame(() => {
          const hook = window.voicewire;
          if (hook === undefined) reject(new Error("The page has no debug hook"));
          else resolve({ ...hook, litText: document.querySelector(".word.lit")?.textContent ?? null });
        });
      }),
  );
}

/** A look at the page while it speaks, with the pitch that its loudspeaker gets at that moment (0 = silence). */
export interface Sample extends Seen {
  readonly hertz: number;
  /** The document shows the word that the clock says, now or when it was last drawn, one picture ago. */
  readonly isInStep: boolean;
}

/** Looks every 60 ms or so, from the first lit word until all is quiet. */
export function sampleSpeech(page: Page): Promise<Sample[]> {
  return page.evaluate(async () => {
    const samples: Sample[] = [];
    const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    let before: string | null = null;
    for (let latestMs = Number.NEGATIVE_INFINITY; ; await nextFrame()) {
      const hook = window.voicewire;
      if (hook === undefined || (samples.length > 0 && !hook.isSpeaking)) return samples;
      const now = hook.litWord?.text ?? null;
      if (performance.now() - latestMs > 60 && (samples.length > 0 || before !== null)) {
        latestMs = performance.now();
        const litText = document.querySelector(".word.lit")?.textContent ?? null;
        const isInStep = litText === now || litText === before;
        samples.push({ ...hook, litText, isInStep, hertz: window.heardHertz?.() ?? 0 });
      }
      before = now;
    }
  });
}

declare global {
  interface Window {
    heardHertz?: () => number;
  }
}

/**
 * Taps the node in front of the loudspeaker, so that a test hears for itself instead of believing the page:
 * `heardHertz()` counts the waves of the last 21 ms.
 */
function listenIn(page: Page): Promise<unknown> {
  return page.addInitScript(() => {
    const create = BaseAudioContext.prototype.createAnalyser;
    BaseAudioContext.prototype.createAnalyser = function (this: BaseAudioContext) {
      const analyser = create.call(this);
      window.heardHertz = () => {
        const scope = new Float32Array(analyser.fftSize);
        analyser.getFloatTimeDomainData(scope);
        const rises: number[] = [];
        for (let at = 1; at < scope.length; at += 1) {
          const before = scope[at - 1] ?? 0;
          const now = scope[at] ?? 0;
          if (before < 0 && now >= 0 && now - before > 1e-3) rises.push(at - now / (now - before));
        }
        const first = rises[0];
        const last = rises.at(-1);
        if (first === undefined || last === undefined || rises.length < 3) return 0;
        return ((rises.length - 1) * analyser.context.sampleRate) / (last - first);
      };
      return analyser;
    };
  });
}

/** Waits until everything has been spoken and heard. */
export async function untilQuiet(page: Page): Promise<void> {
  await page.waitForFunction(() => window.voicewire?.isSpeaking === false);
  // One more picture, so that the document shows what the clock says.
  await see(page);
}

/** What the speech engine calls the sounds that it makes. */
import load from "@echogarden/espeak-ng-emscripten";

export type SoundsOf = (text: string, engineVoice: string) => string[];

/** The sounds of a text in IPA, without stress and pauses. */
export async function loadSounds(): Promise<SoundsOf> {
  const { eSpeakNGWorker: Worker } = await load();
  const engine = new Worker();
  return (text, engineVoice) => {
    if (engine.set_voice(engineVoice) !== 0) throw new RangeError(`The engine has no voice "${engineVoice}"`);
    const sounds: string[] = [];
    engine.synthesize(text, (_samples, events) => {
      for (const { type, id } of events) if (type === "phoneme") sounds.push(String(id));
      return false;
    });
    // What stands in parentheses is the language that follows.
    return sounds.map((sound) => sound.replace(/[ ˈˌ_]/g, "")).filter((sound) => !/^$|^\(/.test(sound));
  };
}

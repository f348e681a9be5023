/** Sound that is as loud, as peaky and as gapped as speech, and the same each time. */

/** `level`: 1 is about -23 LUFS. Full scale is never passed. */
export function syntheticSpeech(sampleRate: number, seconds: number, level: number, seed = 1): Int16Array {
  let state = seed;
  const random = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 31 - 1;
  };
  let noise = 0;
  return Int16Array.from({ length: Math.round(sampleRate * seconds) }, (_, index) => {
    const at = index / sampleRate;
    // Four syllables a second, and a pause of 0.4 s every 2 s.
    const syllable = Math.max(0, Math.sin(2 * Math.PI * 4 * at)) * (at % 2 > 1.6 ? 0 : 1);
    const pulse = Math.sin(2 * Math.PI * 140 * at) ** 9 + 0.4 * Math.sin(2 * Math.PI * 1100 * at);
    noise = 0.7 * noise + 0.3 * random();
    const sample = (pulse + 0.5 * noise) * syllable * level * 12_000;
    return Math.max(-32_768, Math.min(32_767, Math.round(sample)));
  });
}

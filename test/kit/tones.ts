/** What was said by scripted services, counted in its sound. */

/** How many stretches of sound there are: a tone for each word, silence between. */
export function countTones(audio: Buffer, sampleRate: number): number {
  const samples = new Int16Array(audio.buffer.slice(audio.byteOffset, audio.byteOffset + audio.length));
  const window = sampleRate / 100;
  let [tones, loud, quiet] = [0, 0, 2];
  for (let at = 0; at + window <= samples.length; at += window) {
    const isLoud = samples.subarray(at, at + window).some((sample) => Math.abs(sample) > 1500);
    if (isLoud) {
      loud = quiet >= 2 ? 1 : loud + 1;
      quiet = 0;
      // Longer than a fade.
      if (loud === 3) tones += 1;
    } else quiet += 1;
  }
  return tones;
}

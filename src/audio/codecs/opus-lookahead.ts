/**
 * What libopus's encoder lags behind its input, in samples at 48 kHz (2.5 ms + 4 ms, at every rate): the pre-skip of
 * an Ogg stream. Who writes packets that are there needs it, and no codec.
 */
export const OPUS_LOOKAHEAD_48K = 312;

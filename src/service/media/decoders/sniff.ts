/** Says by its first bytes what a file is: names and MIME types are often wrong. */
export type Container =
  | "wav"
  | "aiff"
  | "mp3"
  | "flac"
  | "ogg-opus"
  | "ogg-vorbis"
  | "ogg-flac"
  /** WebM, too. */
  | "matroska"
  /** M4A and QuickTime, too. */
  | "mp4";

/** So many bytes are enough, after an ID3 tag. */
export const SNIFF_BYTES = 8192;
/** An MP3 that was cut out of a longer one begins in the middle of a frame; the longest has 1,441 bytes (layer II 1,729). */
const MAX_MP3_OFFSET = 2048;
const OGG_HEADER_BYTES = 27;

/** Length of the ID3v2 tag at the front; 0 where there is none. Ten bytes are looked at. */
export function id3Bytes(bytes: Uint8Array): number {
  if (bytes.length < 10 || !startsWith(bytes, "ID3")) return 0;
  const [, , , , , flags = 0, a = 0, b = 0, c = 0, d = 0] = bytes;
  const size = ((a & 0x7f) << 21) | ((b & 0x7f) << 14) | ((c & 0x7f) << 7) | (d & 0x7f);
  const hasFooter = (flags & 0x10) !== 0;
  return 10 + size + (hasFooter ? 10 : 0);
}

/** `bytes`: the first SNIFF_BYTES behind an ID3 tag, or all where there are fewer. A header goes before anything that looks like MP3. */
export function containerOf(bytes: Uint8Array): Container | undefined {
  if (startsWith(bytes, "RIFF") || startsWith(bytes, "RF64") || startsWith(bytes, "BW64")) {
    return startsWith(bytes.subarray(8), "WAVE") ? "wav" : undefined;
  }
  if (startsWith(bytes, "FORM")) {
    const kind = bytes.subarray(8);
    return startsWith(kind, "AIFF") || startsWith(kind, "AIFC") ? "aiff" : undefined;
  }
  if (startsWith(bytes, "fLaC")) return "flac";
  if (startsWith(bytes, "OggS")) return oggCodec(bytes);
  if (startsWith(bytes, EBML)) return "matroska";
  if (isMp4(bytes)) return "mp4";
  if (foreignNameOf(bytes) !== undefined) return undefined;
  return hasMp3Frames(bytes) ? "mp3" : undefined;
}

const EBML = "\u001a\u0045\u00df\u00a3";

/** Boxes that stand first in MP4, M4A and QuickTime files, behind their length. */
const FIRST_BOXES = ["ftyp", "moov", "mdat", "wide", "free", "skip", "styp", "moof"] as const;

/** Eight bytes are looked at. */
export function isMp4(bytes: Uint8Array): boolean {
  const box = bytes.subarray(4);
  return FIRST_BOXES.some((name) => startsWith(box, name));
}

/** First bytes of files that are not decoded, and what people call them. */
const FOREIGN: readonly (readonly [magic: string, at: number, name: string])[] = [
  ["caff", 0, "a Core Audio file (CAF)"],
  ["#!AMR", 0, "an AMR recording"],
  ["ADIF", 0, "AAC"],
  ["MThd", 0, "a MIDI file, which holds notes and no sound"],
  ["AVI ", 8, "an AVI film"],
  ["OggS", 0, "an Ogg file whose first stream is not Opus, Vorbis or FLAC"],
  ["\u0030\u0026\u00b2\u0075\u008e\u0066\u00cf\u0011", 0, "a Windows Media file (WMA)"],
  [".snd", 0, "a Sun audio file (AU)"],
  ["wvpk", 0, "a WavPack file"],
  ["MAC ", 0, "a Monkey's Audio file (APE)"],
  ["FLV", 0, "a Flash film"],
  ["\u0089PNG", 0, "a picture (PNG)"],
  ["\u00ff\u00d8\u00ff", 0, "a picture (JPEG)"],
  ["GIF8", 0, "a picture (GIF)"],
  ["%PDF", 0, "a PDF document"],
  ["PK\u0003\u0004", 0, "a ZIP archive"],
  ["\u001f\u008b", 0, "a gzip archive"],
];

/** Says what a file is that containerOf does not know; undefined where nobody knows. */
export function foreignNameOf(bytes: Uint8Array): string | undefined {
  const found = FOREIGN.find(([magic, at]) => startsWith(bytes.subarray(at), magic));
  return found?.[2] ?? (isAdts(bytes) ? "AAC in ADTS frames" : undefined);
}

/** The layer of its frames is 0, which no MPEG audio has. Two of them behind one another. */
function isAdts(bytes: Uint8Array): boolean {
  const first = adtsBytes(bytes, 0);
  return first !== null && (first === bytes.length || adtsBytes(bytes, first) !== null);
}

function adtsBytes(bytes: Uint8Array, at: number): number | null {
  const [sync = 0, kind = 0, , high = 0, middle = 0, low = 0] = bytes.subarray(at, at + 6);
  if (sync !== 0xff || (kind & 0xf6) !== 0xf0) return null;
  const length = ((high & 3) << 11) | (middle << 3) | (low >> 5);
  return length >= 7 ? length : null;
}

/** The codec that the first packet of the first page names. */
function oggCodec(bytes: Uint8Array): Container | undefined {
  const packet = bytes.subarray(OGG_HEADER_BYTES + (bytes[OGG_HEADER_BYTES - 1] ?? 0));
  if (startsWith(packet, "OpusHead")) return "ogg-opus";
  if (startsWith(packet, "\u0001vorbis")) return "ogg-vorbis";
  return startsWith(packet, "\u007fFLAC") ? "ogg-flac" : undefined;
}

function startsWith(bytes: Uint8Array, text: string): boolean {
  return bytes.length >= text.length && [...text].every((letter, at) => bytes[at] === letter.charCodeAt(0));
}

/** Frames behind one another: so many, or up to the end or a tag behind the last. */
const MP3_FRAMES = 4;

function hasMp3Frames(bytes: Uint8Array): boolean {
  for (let at = 0; at < Math.min(bytes.length - 3, MAX_MP3_OFFSET); at += 1) {
    if (isMp3From(bytes, at)) return true;
  }
  return false;
}

function isMp3From(bytes: Uint8Array, from: number): boolean {
  let at = from;
  for (let frames = 0; frames < MP3_FRAMES; frames += 1) {
    const length = frameBytes(bytes, at);
    const isNext = length !== null && (frames === 0 || isSameKind(bytes, from, at));
    // The last frame may be cut off. One alone is enough at the start only: a sync is found everywhere.
    const hasEnded = at >= bytes.length - 3 || isTag(bytes.subarray(at));
    if (!isNext) return hasEnded && frames > (from === 0 ? 0 : 1);
    at += length;
  }
  return true;
}

function isTag(bytes: Uint8Array): boolean {
  return startsWith(bytes, "TAG") || startsWith(bytes, "APETAGEX");
}

/** Version, layer and sample rate. */
function isSameKind(bytes: Uint8Array, a: number, b: number): boolean {
  const kindOf = (at: number) => [(bytes[at + 1] ?? 0) & 0xfe, (bytes[at + 2] ?? 0) & 0x0c].join();
  return kindOf(a) === kindOf(b);
}

/** kbit/s by index 1-14: MPEG-1 layers I, II, III; MPEG-2 layer I, layers II and III. */
const BIT_RATES: Readonly<Record<string, readonly number[]>> = {
  "1.1": [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  "1.2": [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  "1.3": [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  "2.1": [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  "2.2": [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  "2.3": [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
};
const RATES = [44_100, 48_000, 32_000] as const;

/** Length of the MPEG audio frame whose header is there; null where there is none. */
function frameBytes(bytes: Uint8Array, at: number): number | null {
  const [sync = 0, kind = 0, rates = 0] = bytes.subarray(at, at + 3);
  const version = (kind >> 3) & 3;
  const layer = 4 - ((kind >> 1) & 3);
  // Layer 4 is no layer: AAC's frames have it.
  if (sync !== 0xff || (kind & 0xe0) !== 0xe0 || version === 1 || layer === 4) return null;
  const bitRate = BIT_RATES[`${version === 3 ? 1 : 2}.${layer}`]?.[(rates >> 4) - 1];
  const baseRate = RATES[(rates >> 2) & 3];
  if (bitRate === undefined || baseRate === undefined) return null;
  const sampleRate = version === 3 ? baseRate : version === 2 ? baseRate / 2 : baseRate / 4;
  const padding = (rates >> 1) & 1;
  if (layer === 1) return (Math.floor((12_000 * bitRate) / sampleRate) + padding) * 4;
  const samplesPerByte = layer === 3 && version !== 3 ? 72_000 : 144_000;
  return Math.floor((samplesPerByte * bitRate) / sampleRate) + padding;
}

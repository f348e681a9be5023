/** Decodes the packets of a Matroska track: each in the container that its own decoder reads. */
import { opusPacketSamples48k } from "../../../audio/codecs/opus-packet.ts";
import { buildPage, FLAG_FIRST, MAX_SEGMENTS, segmentsOf } from "../../../audio/containers/ogg-page.ts";
import type { PcmPiece } from "../pieces.ts";
import {
  ForeignTrack,
  invalidAudio,
  MAX_CHANNELS,
  requireRate,
  type UploadDecoder,
  unknownFormat,
} from "./decoder.ts";
import { createMp3Upload } from "./mp3.ts";
import { createOggOpusUpload } from "./ogg-opus.ts";
import { VORBIS_COMMENTS } from "./vorbis-head.ts";
import { createFlacUpload, createVorbisUpload } from "./wasm.ts";
import { WavDecoder } from "./wav.ts";

export interface TrackFacts {
  /** Matroska's name: A_OPUS, A_VORBIS and others. */
  readonly codec: string;
  /** What the codec needs before its first packet. */
  readonly setup: Uint8Array;
  /** Hz. */
  readonly sampleRate: number;
  readonly channels: number;
  /** Bits of a sample; 0 where the file does not say. */
  readonly bits: number;
}

export interface TrackDecoder {
  /** Throws ApiError `invalid_audio` for a broken packet. */
  packet(bytes: Uint8Array): Promise<readonly PcmPiece[]>;
  finish(): Promise<readonly PcmPiece[]>;
  close(): void;
}

/** Rejects with ApiError 400 for a codec that is not decoded here, and for a broken setup. */
export async function createTrackDecoder(facts: TrackFacts): Promise<TrackDecoder> {
  switch (facts.codec) {
    case "A_OPUS": {
      const headers = [facts.setup, OPUS_TAGS];
      return await OggTrack.open(createOggOpusUpload(), headers, opusPacketSamples48k);
    }
    case "A_VORBIS": {
      const [id, , setup] = vorbisHeaders(facts.setup);
      return await OggTrack.open(createVorbisUpload(), [id, VORBIS_COMMENTS, setup], () => 0);
    }
    case "A_FLAC":
      return await PlainTrack.open(createFlacUpload(), facts.setup);
    case "A_MPEG/L3":
      return await PlainTrack.open(await createMp3Upload(), new Uint8Array(0));
    case "A_PCM/INT/LIT":
      return await PlainTrack.open(new WavDecoder(), wavHeaderOf(facts, 1));
    case "A_PCM/FLOAT/IEEE":
      return await PlainTrack.open(new WavDecoder(), wavHeaderOf(facts, 3));
    default: {
      // The name is the file's: letters and digits only.
      const shown = facts.codec.slice(0, 32).replaceAll(/[^\w/.-]/g, "?");
      throw new ForeignTrack(
        `its audio track in WebM or Matroska has the codec "${shown}", expected Opus, Vorbis, FLAC, MP3 or PCM`,
      );
    }
  }
}

/** Packets that follow one another without a frame of their own. */
class PlainTrack implements TrackDecoder {
  readonly #decoder: UploadDecoder;

  private constructor(decoder: UploadDecoder) {
    this.#decoder = decoder;
  }

  static async open(decoder: UploadDecoder, setup: Uint8Array): Promise<TrackDecoder> {
    try {
      if (setup.length > 0) await decoder.push(setup);
      return new PlainTrack(decoder);
    } catch (thrown) {
      decoder.close();
      throw thrown;
    }
  }

  packet(bytes: Uint8Array): Promise<readonly PcmPiece[]> {
    return this.#decoder.push(bytes);
  }

  finish(): Promise<readonly PcmPiece[]> {
    return this.#decoder.finish();
  }

  close(): void {
    this.#decoder.close();
  }
}

/** Every packet on an Ogg page of its own. */
class OggTrack implements TrackDecoder {
  readonly #decoder: UploadDecoder;
  readonly #samplesOf: (packet: Uint8Array) => number;
  #sequence = 0;
  #granule = 0;

  private constructor(decoder: UploadDecoder, samplesOf: (packet: Uint8Array) => number) {
    this.#decoder = decoder;
    this.#samplesOf = samplesOf;
  }

  static async open(
    decoder: UploadDecoder,
    headers: readonly Uint8Array[],
    samplesOf: (packet: Uint8Array) => number,
  ): Promise<TrackDecoder> {
    const track = new OggTrack(decoder, samplesOf);
    try {
      for (const header of headers) await decoder.push(track.#page(header));
      return track;
    } catch (thrown) {
      decoder.close();
      throw thrown;
    }
  }

  packet(bytes: Uint8Array): Promise<readonly PcmPiece[]> {
    this.#granule += this.#samplesOf(bytes);
    return this.#decoder.push(this.#page(bytes));
  }

  finish(): Promise<readonly PcmPiece[]> {
    return this.#decoder.finish();
  }

  close(): void {
    this.#decoder.close();
  }

  #page(packet: Uint8Array): Uint8Array {
    if (segmentsOf(packet) > MAX_SEGMENTS) throw invalidAudio("a packet of its audio track is too large");
    const sequence = this.#sequence;
    this.#sequence += 1;
    const flags = sequence === 0 ? FLAG_FIRST : 0;
    return buildPage({ flags, granule: this.#granule, serial: 1, sequence, packets: [packet] });
  }
}

/** Comments without any: those of the file hold pictures. */
const OPUS_TAGS = Buffer.concat([Buffer.from("OpusTags"), Buffer.alloc(8)]);

/** Three packets in one, with the sizes of the first two in front, in pieces of 255. */
function vorbisHeaders(setup: Uint8Array): readonly [Uint8Array, Uint8Array, Uint8Array] {
  const sizes: number[] = [];
  let at = 1;
  while (setup[0] === 2 && sizes.length < 2) {
    let size = 0;
    let byte: number | undefined = 255;
    while (byte === 255) {
      byte = setup[at];
      size += byte ?? 0;
      at += 1;
    }
    sizes.push(size);
  }
  const [id = 0, comments = 0] = sizes;
  const setupAt = at + id + comments;
  if (id === 0 || setupAt >= setup.length) throw invalidAudio("the setup of its Vorbis track is broken");
  return [setup.subarray(at, at + id), setup.subarray(at + id, setupAt), setup.subarray(setupAt)];
}

/** A WAV file of unknown length. */
function wavHeaderOf({ sampleRate, channels, bits }: TrackFacts, codec: number): Uint8Array {
  requireRate(sampleRate);
  const isKnown = bits > 0 && bits <= 64 && bits % 8 === 0 && channels > 0 && channels <= MAX_CHANNELS;
  if (!isKnown) throw unknownFormat(`its PCM track has ${channels} channels of ${bits} bits`);
  const blockBytes = (channels * bits) / 8;
  const header = Buffer.alloc(44);
  header.write("RIFF", 0, "latin1");
  header.write("WAVEfmt ", 8, "latin1");
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(codec, 20);
  header.writeUInt16LE(channels, 22);
  header.writeUInt32LE(sampleRate, 24);
  header.writeUInt32LE(Math.min(0xffff_ffff, sampleRate * blockBytes), 28);
  header.writeUInt16LE(blockBytes, 32);
  header.writeUInt16LE(bits, 34);
  header.write("data", 36, "latin1");
  header.writeUInt32LE(0xffff_ffff, 40);
  return header;
}

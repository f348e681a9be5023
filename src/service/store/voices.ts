/** Voices that were added from samples, and the samples. */
import { randomBytes } from "node:crypto";
import {
  jsonOf,
  numberOf,
  numberOrNull,
  type Row,
  type StoreDatabase,
  textOf,
  textOrNull,
} from "./database.ts";
import type { MediaFile, MediaStore, PinnedMedia } from "./media.ts";
import { deleteWithMedia, mediaOf } from "./rows.ts";

export interface NewSample {
  readonly fileName: string;
  readonly mimeType: string;
  readonly durationSeconds: number | null;
  /** Noise was taken out before the voice was measured; null in samples of older stores. */
  readonly removesNoise: boolean | null;
}

export interface Sample extends NewSample {
  readonly id: string;
  readonly voiceId: string;
  readonly media: MediaFile;
}

interface NewVoice {
  readonly name: string;
  readonly description: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** How the engine makes it sound; the voice section's own business. */
  readonly sound: Readonly<Record<string, string | number>>;
  /** Seconds since 1970. */
  readonly createdAtUnix: number;
}

export interface StoredVoice extends NewVoice {
  readonly id: string;
  readonly samples: readonly Sample[];
}

export class VoiceStore {
  readonly #database: StoreDatabase;
  readonly #media: MediaStore;

  constructor(database: StoreDatabase, media: MediaStore) {
    this.#database = database;
    this.#media = media;
  }

  /** Takes over the samples' audio: it is released here. */
  add(
    voice: NewVoice,
    samples: readonly { readonly sample: NewSample; readonly media: PinnedMedia }[],
  ): StoredVoice {
    const id = randomBytes(10).toString("hex");
    try {
      this.#database.transaction(() => {
        this.#database.run(
          "INSERT INTO voice (id, name, description, labels, sound, created_at_unix) VALUES (?, ?, ?, ?, ?, ?)",
          id,
          voice.name,
          voice.description,
          JSON.stringify(voice.labels),
          JSON.stringify(voice.sound),
          voice.createdAtUnix,
        );
        for (const { sample, media } of samples) this.#insertSample(id, sample, media);
      });
    } finally {
      for (const { media } of samples) media.release();
    }
    return { ...voice, id, samples: this.#samplesOf(id) };
  }

  get(id: string): StoredVoice | undefined {
    const row = this.#database.get("SELECT * FROM voice WHERE id = ?", id);
    return row === undefined ? undefined : this.#voiceOf(row);
  }

  /** Newest first. */
  list(): StoredVoice[] {
    return this.#database.all("SELECT * FROM voice ORDER BY seq DESC").map((row) => this.#voiceOf(row));
  }

  /** Its samples and their audio go with it; false where it is not there. */
  delete(id: string): boolean {
    const samples = this.#samplesOf(id);
    const isDeleted = this.#database.run("DELETE FROM voice WHERE id = ?", id) > 0;
    for (const { media } of samples) this.#media.drop(media.hash);
    return isDeleted;
  }

  sample(voiceId: string, sampleId: string): Sample | undefined {
    const row = this.#database.get(
      "SELECT * FROM voice_sample WHERE voice_id = ? AND id = ?",
      voiceId,
      sampleId,
    );
    return row === undefined ? undefined : sampleOf(row);
  }

  /** false where it is not there. */
  deleteSample(voiceId: string, sampleId: string): boolean {
    if (this.sample(voiceId, sampleId) === undefined) return false;
    return deleteWithMedia({ database: this.#database, media: this.#media }, "voice_sample", sampleId);
  }

  #insertSample(voiceId: string, sample: NewSample, media: MediaFile): void {
    this.#database.run(
      `INSERT INTO voice_sample (id, voice_id, file_name, mime_type, duration_seconds, removes_noise, media_hash,
        media_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      randomBytes(10).toString("hex"),
      voiceId,
      sample.fileName,
      sample.mimeType,
      sample.durationSeconds,
      sample.removesNoise === null ? null : Number(sample.removesNoise),
      media.hash,
      media.bytes,
    );
  }

  #samplesOf(voiceId: string): Sample[] {
    return this.#database
      .all("SELECT * FROM voice_sample WHERE voice_id = ? ORDER BY seq", voiceId)
      .map(sampleOf);
  }

  #voiceOf(row: Row): StoredVoice {
    return {
      id: textOf(row.id),
      name: textOf(row.name),
      description: textOrNull(row.description),
      labels: jsonOf(row.labels) as Readonly<Record<string, string>>,
      sound: jsonOf(row.sound) as Readonly<Record<string, string | number>>,
      createdAtUnix: numberOf(row.created_at_unix),
      samples: this.#samplesOf(textOf(row.id)),
    };
  }
}

function sampleOf(row: Row): Sample {
  return {
    id: textOf(row.id),
    voiceId: textOf(row.voice_id),
    fileName: textOf(row.file_name),
    mimeType: textOf(row.mime_type),
    durationSeconds: numberOrNull(row.duration_seconds),
    removesNoise: row.removes_noise === null ? null : numberOf(row.removes_noise) === 1,
    media: mediaOf(row),
  };
}

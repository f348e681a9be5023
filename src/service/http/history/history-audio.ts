/** The audio of history items: one as MPEG, and the download of one or of several in a zip. */
import { Readable } from "node:stream";
import type { FastifyInstance } from "fastify";
import { Zip, ZipPassThrough } from "fflate";
import { wavHeader } from "../../../audio/containers/wav.ts";
import { OUTPUT_FORMATS, parseUpstreamFormat } from "../../../audio/formats.ts";
import { transcode } from "../../media/transcode.ts";
import type { HistoryItem } from "../../store/history.ts";
import { bytes, DOWNLOAD_REFUSED } from "../answers.ts";
import type { ServiceContext } from "../context.ts";
import { list, text } from "../kinds.ts";
import { operation, route } from "../operation.ts";
import { audioTypeOf, DEFAULT_FORMAT } from "../output-format.ts";
import { optional, required } from "../schema.ts";
import { Spool } from "../spool.ts";
import { HISTORY_ITEM_ID, requireItem } from "./history-item.ts";

/** `none` and `default` are words of the interface's descriptions for "as it was made". */
const DOWNLOAD_FORMATS: readonly string[] = ["wav", "none", "default"];
/** Items in one archive. */
const MAX_ITEMS = 1000;
/** Bytes of an archive that wait for a slow client. */
const ZIP_QUEUE_BYTES = 262_144;

/** A file as it is handed out. */
interface AudioFile {
  readonly extension: string;
  readonly contentType: string;
  readonly bytes: AsyncIterable<Uint8Array>;
}

const AUDIO = operation({
  method: "GET",
  url: "/v1/history/:history_item_id/audio",
  id: "get_audio_full_from_speech_history_item",
  tag: "History",
  summary: "An item's audio as MPEG, whatever it was made as",
  params: { history_item_id: HISTORY_ITEM_ID },
  errors: [404],
  answer: bytes(["audio/mpeg"], "The audio."),
});
const DOWNLOAD = operation({
  method: "POST",
  url: "/v1/history/download",
  id: "download_speech_history_items",
  tag: "History",
  summary: "The audio of one item, or of several in an archive",
  body: {
    kind: "json",
    name: "HistoryDownloadRequest",
    shape: {
      history_item_ids: required(
        list(text(), { later: { minItems: 1, maxItems: MAX_ITEMS } }),
        "What is repeated counts once; one that is not there is refused with 404.",
      ),
      output_format: optional(
        text({ later: { enum: DOWNLOAD_FORMATS } }),
        "As it was made (absent, none or default), or WAV.",
      ),
    },
  },
  errors: [404, 429],
  answer: bytes(
    [...new Set([...OUTPUT_FORMATS.map(audioTypeOf), "application/zip"])],
    "The file of one item, or a zip of several.",
  ),
  otherAnswers: { 400: DOWNLOAD_REFUSED },
});

/** GET /v1/history/{history_item_id}/audio and POST /v1/history/download. */
export function registerHistoryAudio(app: FastifyInstance, context: ServiceContext): void {
  route(app, context, AUDIO, async ({ params, reply }) => {
    const item = requireItem(context, params.history_item_id);
    const { media } = context.store;
    const stream = isMpeg(item)
      ? media.stream(item.media.hash)
      : transcode(media.stream(item.media.hash), { from: item.outputFormat, to: DEFAULT_FORMAT });
    return reply.type("audio/mpeg").send(Readable.from(stream));
  });
  route(app, context, DOWNLOAD, async ({ body, reply }) => {
    const ids = [...new Set(body.history_item_ids)];
    const format = body.output_format;
    const refused = refusedDownload(ids, format);
    // A shape of its own, which only this endpoint has.
    if (refused !== null) return reply.code(400).send(refused);
    const items = ids.map((id) => requireItem(context, id));
    const [only] = items;
    if (only !== undefined && items.length === 1) {
      const file = audioFileOf(context, only, format === "wav");
      return reply
        .type(file.contentType)
        .header("content-disposition", `attachment; filename="${only.id}.${file.extension}"`)
        .send(Readable.from(file.bytes));
    }
    return reply
      .type("application/zip")
      .header("content-disposition", 'attachment; filename="history.zip"')
      .send(Readable.from(zipOf(context, items, format === "wav")));
  });
}

function refusedDownload(ids: readonly string[], format: string | undefined): object | null {
  if (format !== undefined && !DOWNLOAD_FORMATS.includes(format)) {
    const message = `Invalid output_format '${format.slice(0, 64)}', expected 'wav', 'none' or 'default'.`;
    return { error: "invalid_output_format", message };
  }
  if (ids.length === 0 || ids.length > MAX_ITEMS) {
    const message = `history_item_ids has ${ids.length} items, expected 1 to ${MAX_ITEMS}.`;
    return { error: "invalid_history_item_ids", message };
  }
  return null;
}

function isMpeg(item: HistoryItem): boolean {
  return item.outputFormat.startsWith("mp3_");
}

/** As it was made, or as a WAV file. */
function audioFileOf(context: ServiceContext, item: HistoryItem, isWav: boolean): AudioFile {
  const codec = parseUpstreamFormat(item.outputFormat)?.codec ?? "mp3";
  if (isWav || codec === "wav")
    return { extension: "wav", contentType: "audio/wav", bytes: wavOf(context, item) };
  const extension = codec === "opus" ? "ogg" : codec;
  return { extension, contentType: item.contentType, bytes: context.store.media.stream(item.media.hash) };
}

/** With its real length in the header, which is known only when all is decoded. */
async function* wavOf(
  { store, temporaryFiles }: ServiceContext,
  item: HistoryItem,
): AsyncGenerator<Uint8Array> {
  const sampleRate = parseUpstreamFormat(item.outputFormat)?.sampleRate ?? 44_100;
  const isPcm = /^(?:pcm|wav)_/.test(item.outputFormat);
  const source = store.media.stream(item.media.hash);
  if (isPcm) {
    yield wavHeader({ sampleRate, dataBytes: item.media.bytes });
    yield* source;
    return;
  }
  const spool = new Spool(temporaryFiles);
  try {
    const to = pcmFormatNear(sampleRate);
    for await (const bytes of transcode(source, { from: item.outputFormat, to })) await spool.write(bytes);
    yield wavHeader({ sampleRate: parseUpstreamFormat(to)?.sampleRate ?? 44_100, dataBytes: spool.size });
    yield* spool.read();
  } finally {
    await spool.close();
  }
}

function pcmFormatNear(sampleRate: number): string {
  const name = `pcm_${sampleRate}`;
  return parseUpstreamFormat(name) === undefined ? "pcm_44100" : name;
}

/** Files as they are: sound does not get smaller by zipping it. Read one after the other, no faster than the client. */
async function* zipOf(
  context: ServiceContext,
  items: readonly HistoryItem[],
  isWav: boolean,
): AsyncGenerator<Uint8Array> {
  let made: Uint8Array[] = [];
  let madeBytes = 0;
  let failure: Error | null = null;
  const zip = new Zip((error, bytes) => {
    failure ??= error;
    if (error === null) made.push(bytes);
    madeBytes += bytes?.byteLength ?? 0;
  });
  const take = (): Uint8Array[] => {
    if (failure !== null) throw failure;
    const taken = made;
    made = [];
    madeBytes = 0;
    return taken;
  };
  for (const item of items) {
    const file = audioFileOf(context, item, isWav);
    const entry = new ZipPassThrough(`${fileNameOf(item)}.${file.extension}`);
    entry.mtime = item.dateUnix * 1000;
    zip.add(entry);
    for await (const bytes of file.bytes) {
      entry.push(new Uint8Array(bytes));
      if (madeBytes >= ZIP_QUEUE_BYTES) yield* take();
    }
    entry.push(new Uint8Array(0), true);
    yield* take();
  }
  zip.end();
  yield* take();
}

/** Who spoke, and the id, so that no two are the same. */
function fileNameOf(item: HistoryItem): string {
  const name = (item.voiceName ?? "dialogue").replace(/[^\p{L}\p{N}]+/gu, "_").slice(0, 40);
  return `${name}_${item.id}`;
}

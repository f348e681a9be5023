/** The fields of a form: texts and files by name, as schema.ts reads them. */
import type { Upload, UploadedFile } from "../media/upload.ts";
import { listOf } from "./json-schema.ts";
import type { Reading, Schema, Shape } from "./schema.ts";

const BINARY = { type: "string", format: "binary" } as const;
/** Characters of a text in a file's place that the answer repeats. */
const MAX_SHOWN = 200;

/** The one file of that part. */
export function file(): Schema<UploadedFile> {
  return { isFile: true, read: fileOf, json: BINARY };
}

/** Every file of that part. */
export function files(): Schema<readonly UploadedFile[]> {
  return { isFile: true, read: filesOf, json: { ...listOf(BINARY), minItems: 1 } };
}

/**
 * What readShape reads; of fields that the shape lacks the names alone. An empty text counts as absent, as FastAPI has it. A
 * file under a text's name is a fault of that field.
 */
export function formSource(upload: Upload, shape: Shape): Readonly<Record<string, unknown>> {
  const source: Record<string, unknown> = {};
  for (const [name, { schema }] of Object.entries(shape)) {
    const text = upload.fields.get(name);
    const found = upload.files.filter(({ field }) => field === name);
    if (schema.isFile === true) source[name] = found.length > 0 ? found : text;
    else if (found.length > 0) source[name] = { file: found[0]?.fileName ?? "" };
    else if (text !== "") source[name] = text;
  }
  for (const name of [...upload.fields.keys(), ...upload.files.map(({ field }) => field)]) {
    if (!Object.hasOwn(shape, name)) source[name] = undefined;
  }
  return source;
}

/** No second file is taken and left alone. */
function fileOf(value: unknown, at: Reading): UploadedFile | undefined {
  const found = filesOf(value, at);
  if (found === undefined || found.length === 1) return found?.[0];
  const msg = `Value error, Expected one UploadFile, received: ${found.length}`;
  at.faults.push({ type: "value_error", loc: at.place, msg, input: null, ctx: { error: {} } });
  return undefined;
}

function filesOf(value: unknown, { place, faults }: Reading): readonly UploadedFile[] | undefined {
  // formSource puts nothing else here.
  if (typeof value !== "string") return value as readonly UploadedFile[];
  const msg = "Value error, Expected UploadFile, received: <class 'str'>";
  const input = value.slice(0, MAX_SHOWN);
  faults.push({ type: "value_error", loc: place, msg, input, ctx: { error: {} } });
  return undefined;
}

/**
 * What the file of a voice model says of itself: its metadata, and whether it draws random numbers. The runtime would tell a
 * broken file only by ending its process; most such files are found here. The weights are skipped.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

export interface OnnxFacts {
  readonly metadata: ReadonlyMap<string, string>;
  /** The same input may give other samples each time. */
  readonly isRandom: boolean;
}

/** The file is none, or not all of it is there; `message` continues "the file ...". */
export class OnnxFault extends Error {}

/** Bytes of the file that are read at a time. */
const WINDOW_BYTES = 65_536;
/** Fields of the file and of its graph that are looked at. */
const MAX_FIELDS = 500_000;
const MAX_METADATA = 200;
/** Longer metadata are notes of whoever made the model. */
const MAX_VALUE_BYTES = 65_536;
/** What a node of the graph says of itself is far shorter than the constants that one may hold. */
const MAX_NODE_BYTES = 1_048_576;

/** Wire types of protobuf. */
const VARINT = 0;
const FIXED_64 = 1;
const LENGTH = 2;
const FIXED_32 = 5;
/** Fields of onnx.proto: ModelProto, GraphProto, StringStringEntryProto. */
const MODEL_GRAPH = 7;
const MODEL_METADATA = 14;
const GRAPH_NODE = 1;
const ENTRY_KEY = 1;
const ENTRY_VALUE = 2;

const RANDOM_OPERATORS = ["RandomNormal", "RandomUniform", "Bernoulli", "Multinomial"];

/** Throws OnnxFault, or what the file system throws. */
export function readOnnxFile(path: string): OnnxFacts {
  const descriptor = openSync(path, "r");
  try {
    const { size } = fstatSync(descriptor);
    return readOnnx(new FileWindow((into, at) => readSync(descriptor, into, 0, into.length, at), size));
  } finally {
    closeSync(descriptor);
  }
}

/** The same of bytes that are at hand. */
export function readOnnxBytes(bytes: Uint8Array): OnnxFacts {
  const read: ReadAt = (into, at) => {
    const part = bytes.subarray(at, at + into.length);
    into.set(part);
    return part.length;
  };
  return readOnnx(new FileWindow(read, bytes.length));
}

function readOnnx(file: FileWindow): OnnxFacts {
  const metadata = new Map<string, string>();
  let [isRandom, hasGraph] = [false, false];
  for (const field of fieldsOf(file, { from: 0, to: file.size })) {
    if (field.number === MODEL_GRAPH && field.type === LENGTH) {
      hasGraph = true;
      isRandom ||= drawsRandomNumbers(file, field);
    } else if (field.number === MODEL_METADATA && field.type === LENGTH) {
      const [key, value] = entryOf(file, field);
      if (metadata.size < MAX_METADATA) metadata.set(key, value);
    }
  }
  if (!hasGraph) throw new OnnxFault("is no ONNX model");
  return { metadata, isRandom };
}

function drawsRandomNumbers(file: FileWindow, graph: Range): boolean {
  for (const node of fieldsOf(file, graph)) {
    if (node.number !== GRAPH_NODE || node.type !== LENGTH || node.to - node.from > MAX_NODE_BYTES) continue;
    const text = Buffer.from(file.bytes(node.from, node.to)).toString("latin1");
    if (RANDOM_OPERATORS.some((name) => text.includes(name))) return true;
  }
  return false;
}

function entryOf(file: FileWindow, entry: Range): [key: string, value: string] {
  let [key, value] = ["", ""];
  for (const { number, from, to } of fieldsOf(file, entry)) {
    if (to - from > MAX_VALUE_BYTES) continue;
    const text = Buffer.from(file.bytes(from, to)).toString("utf8");
    if (number === ENTRY_KEY) key = text;
    else if (number === ENTRY_VALUE) value = text;
  }
  return [key, value];
}

interface Range {
  readonly from: number;
  readonly to: number;
}

interface Field extends Range {
  readonly number: number;
  readonly type: number;
}

/** The fields of a message, without looking into them. */
function* fieldsOf(file: FileWindow, { from, to }: Range): Generator<Field> {
  let at = from;
  for (let count = 0; at < to; count += 1) {
    if (count >= MAX_FIELDS) throw new OnnxFault(`has more than ${MAX_FIELDS} parts`);
    const tag = file.varint(at, to);
    const [number, type] = [Math.floor(tag.value / 8), tag.value % 8];
    const start = type === LENGTH ? file.varint(tag.end, to) : { value: 0, end: tag.end };
    const end = endOf(file, type, { ...start, to });
    if (number === 0) throw new OnnxFault("is no ONNX model");
    if (end > to) throw new OnnxFault("is cut off: its download did not end");
    yield { number, type, from: start.end, to: end };
    at = end;
  }
}

function endOf(
  file: FileWindow,
  type: number,
  { value, end, to }: { readonly value: number; readonly end: number; readonly to: number },
): number {
  if (type === VARINT) return file.varint(end, to).end;
  if (type === FIXED_64) return end + 8;
  if (type === LENGTH) return end + value;
  if (type === FIXED_32) return end + 4;
  throw new OnnxFault("is no ONNX model");
}

/** Fills as much of the array as there is from a place of the file on. */
type ReadAt = (into: Uint8Array, at: number) => number;

class FileWindow {
  readonly size: number;
  readonly #read: ReadAt;
  readonly #window = new Uint8Array(WINDOW_BYTES);
  #from = 0;
  #length = 0;

  constructor(read: ReadAt, size: number) {
    this.#read = read;
    this.size = size;
  }

  bytes(from: number, to: number): Uint8Array {
    const wanted = new Uint8Array(to - from);
    const length = this.#read(wanted, from);
    if (length < wanted.length) throw new OnnxFault("is cut off: its download did not end");
    return wanted;
  }

  varint(from: number, to: number): { readonly value: number; readonly end: number } {
    let [value, scale] = [0, 1];
    for (let at = from; at < to && at < from + 10; at += 1) {
      const byte = this.#byte(at);
      value += (byte & 0x7f) * scale;
      scale *= 128;
      if (byte < 0x80) return { value, end: at + 1 };
    }
    throw new OnnxFault("is no ONNX model, or is cut off");
  }

  #byte(at: number): number {
    if (at < this.#from || at >= this.#from + this.#length) {
      this.#from = at;
      this.#length = this.#read(this.#window, at);
    }
    return this.#window[at - this.#from] ?? 0;
  }
}

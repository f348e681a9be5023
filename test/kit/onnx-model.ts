/** ONNX models made on the spot: the few parts of onnx.proto that a voice model needs, written by hand. */

type Bytes = Uint8Array;

const FLOAT = 1;
const INT64 = 7;

function varint(value: number): Bytes {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Uint8Array.from([...bytes, Number(rest)]);
}

const number = (field: number, value: number): Bytes => Buffer.concat([varint(field * 8), varint(value)]);

function part(field: number, content: Bytes | string): Bytes {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  return Buffer.concat([varint(field * 8 + 2), varint(bytes.length), bytes]);
}

function tensor(
  name: string,
  type: number,
  dims: readonly number[],
  data: Float32Array | BigInt64Array,
): Bytes {
  const raw = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return Buffer.concat([
    ...dims.map((size) => number(1, size)),
    number(2, type),
    part(8, name),
    part(9, raw),
  ]);
}

const floats = (name: string, dims: readonly number[], values: ArrayLike<number>): Bytes =>
  tensor(name, FLOAT, dims, Float32Array.from(values));
const integers = (name: string, values: readonly number[]): Bytes =>
  tensor(name, INT64, [values.length], BigInt64Array.from(values, BigInt));

function node(operator: string, inputs: readonly string[], output: string, attribute?: Bytes): Bytes {
  return Buffer.concat([
    ...inputs.map((name) => part(1, name)),
    part(2, output),
    part(3, output),
    part(4, operator),
    ...(attribute === undefined ? [] : [part(5, attribute)]),
  ]);
}

const integerAttribute = (name: string, value: number): Bytes =>
  Buffer.concat([part(1, name), number(3, value), number(20, 2)]);
const textAttribute = (name: string, value: string): Bytes =>
  Buffer.concat([part(1, name), part(4, value), number(20, 3)]);

function value(name: string, type: number, dims: readonly (number | string)[]): Bytes {
  const shape = dims.map((size) => part(1, typeof size === "string" ? part(2, size) : number(1, size)));
  const tensorType = Buffer.concat([number(1, type), part(2, Buffer.concat(shape))]);
  return Buffer.concat([part(1, name), part(2, part(1, tensorType))]);
}

export interface TalkingModel {
  readonly metadata: Readonly<Record<string, string | number>>;
  /** The sound of each token, all of one length. */
  readonly sounds: readonly Float32Array[];
  readonly speakers: number;
  /** Adds noise, as far as it is asked to. */
  readonly isNoisy: boolean;
}

/**
 * A model in the shape of a VITS that says the sound of each of its tokens; a lower speed makes them longer, and each further
 * speaker is quieter.
 */
export function onnxModel({ metadata, sounds, speakers, isNoisy }: TalkingModel): Bytes {
  const width = sounds[0]?.length ?? 0;
  const gains = Array.from({ length: speakers }, (_, speaker) => 1 / (speaker + 1));
  const axis = integerAttribute("axis", 0);
  const nodes = [
    node("Gather", ["table", "x"], "rows", axis),
    node("Reshape", ["rows", "shape"], "flat"),
    node("Gather", ["scales", "first"], "noise_scale", axis),
    node("Gather", ["scales", "second"], "length", axis),
    node("Concat", ["ones", "length"], "sizes", axis),
    node("Resize", ["flat", "", "sizes"], "sized", textAttribute("mode", "linear")),
    node("Gather", ["gains", "sid"], "gain", axis),
    node("Mul", ["sized", "gain"], isNoisy ? "plain" : "y"),
    ...(isNoisy
      ? [
          node("RandomNormalLike", ["plain"], "random"),
          node("Mul", ["random", "noise_scale"], "scaled"),
          node("Mul", ["scaled", "quiet"], "noise"),
          node("Add", ["plain", "noise"], "y"),
        ]
      : []),
  ];
  const constants = [
    floats(
      "table",
      [sounds.length, width],
      sounds.flatMap((sound) => [...sound]),
    ),
    integers("shape", [1, 1, -1]),
    integers("first", [0]),
    integers("second", [1]),
    floats("ones", [2], [1, 1]),
    floats("gains", [speakers], gains),
    floats("quiet", [1], [0.003]),
  ];
  const inputs = [
    value("x", INT64, ["N", "T"]),
    value("x_length", INT64, ["N"]),
    value("scales", FLOAT, [3]),
    value("sid", INT64, ["M"]),
  ];
  const graph = Buffer.concat([
    ...nodes.map((bytes) => part(1, bytes)),
    part(2, "tiny"),
    ...constants.map((bytes) => part(5, bytes)),
    ...inputs.map((bytes) => part(11, bytes)),
    part(12, value("y", FLOAT, ["N", 1, "S"])),
  ]);
  const entries = Object.entries(metadata).map(([key, text]) =>
    part(14, Buffer.concat([part(1, key), part(2, String(text))])),
  );
  return Buffer.concat([number(1, 8), part(2, "test"), part(8, number(2, 17)), part(7, graph), ...entries]);
}

/** The elements of EBML, in which Matroska and WebM are written: an id, a size, and so many bytes. */

/** The longest id has 4 bytes, the longest size 8. */
export const MAX_ELEMENT_HEADER_BYTES = 12;

export interface ElementHeader {
  readonly id: number;
  /** Bytes of the content; null where it is as long as it gets (a live recording). */
  readonly size: number | null;
  readonly headerBytes: number;
}

/** A number of 1 to 8 bytes, whose length its first byte says. */
interface Vint {
  readonly value: number;
  readonly length: number;
  /** All its bits are set: "not known". */
  readonly isUnknown: boolean;
}

/** "short": more bytes are needed; "broken": none would help. */
export function elementAt(bytes: Uint8Array, at: number): ElementHeader | "short" | "broken" {
  const first = bytes[at];
  if (first === undefined) return "short";
  const idBytes = Math.clz32(first) - 23;
  if (idBytes > 4) return "broken";
  if (at + idBytes >= bytes.length) return "short";
  let id = 0;
  for (let index = 0; index < idBytes; index += 1) id = id * 256 + (bytes[at + index] ?? 0);
  const size = vintAt(bytes, at + idBytes);
  if (size === "short" || size === "broken") return size;
  return { id, size: size.isUnknown ? null : size.value, headerBytes: idBytes + size.length };
}

/** As elementAt; numbers that a double does not hold are "broken", too. */
export function vintAt(bytes: Uint8Array, at: number): Vint | "short" | "broken" {
  const first = bytes[at];
  if (first === undefined) return "short";
  const length = Math.clz32(first) - 23;
  if (length > 8) return "broken";
  if (at + length > bytes.length) return "short";
  const mask = 0xff >> length;
  let value = first & mask;
  let isUnknown = value === mask;
  for (let index = 1; index < length; index += 1) {
    const byte = bytes[at + index] ?? 0;
    isUnknown = isUnknown && byte === 0xff;
    value = value * 256 + byte;
  }
  return isUnknown || Number.isSafeInteger(value) ? { value, length, isUnknown } : "broken";
}

/** The elements inside one; what is cut off or broken at its end is left out. */
export function* childrenOf(
  bytes: Uint8Array,
): Generator<{ readonly id: number; readonly content: Uint8Array }> {
  for (let at = 0; at < bytes.length; ) {
    const header = elementAt(bytes, at);
    if (header === "short" || header === "broken" || header.size === null) return;
    const from = at + header.headerBytes;
    if (from + header.size > bytes.length) return;
    yield { id: header.id, content: bytes.subarray(from, from + header.size) };
    at = from + header.size;
  }
}

/** A whole number of up to 6 bytes; longer ones are cut off in front. */
export function unsignedOf(content: Uint8Array): number {
  return content.subarray(-6).reduce((value, byte) => value * 256 + byte, 0);
}

/** 4 or 8 bytes; 0 for any other length. */
export function floatOf(content: Uint8Array): number {
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  if (content.length === 4) return view.getFloat32(0);
  return content.length === 8 ? view.getFloat64(0) : 0;
}

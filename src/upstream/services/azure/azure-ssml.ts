/** A text as Azure takes it: SSML, in which nothing of the text is markup but its pauses. */

export interface SsmlOptions {
  readonly text: string;
  readonly voice: string;
  readonly language: string;
  readonly speed: number | undefined;
}

const BREAK = /<break(?:\s+(?:time|strength)="[a-z0-9.-]+")*\s*\/>/g;
/** Those that are written in another way would be read aloud. */
const OTHER_BREAK = /<break\b[^<>]{0,512}>/gi;
const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
};
/** No XML can hold them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const UNHOLDABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu;

export function ssmlOf({ text, voice, language, speed }: SsmlOptions): string {
  const pauses = text.match(BREAK) ?? [];
  const parts = text.split(BREAK).map((part) => escaped(part.replace(OTHER_BREAK, " ")));
  const spoken = parts.map((part, index) => part + (pauses[index] ?? "")).join("");
  const paced = speed === undefined ? spoken : `<prosody rate="${speed}">${spoken}</prosody>`;
  const space = 'version="1.0" xmlns="http://www.w3.org/2001/10/synthesis"';
  return `<speak ${space} xml:lang="${escaped(language)}"><voice name="${escaped(voice)}">${paced}</voice></speak>`;
}

function escaped(text: string): string {
  return text.replace(UNHOLDABLE, " ").replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}

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
/** What XML forbids, and the other control characters: nobody speaks them. */
const UNHOLDABLE = /(?![\t\n\r])\p{Cc}|[\ufffe\uffff]|\p{Surrogate}/gu;

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

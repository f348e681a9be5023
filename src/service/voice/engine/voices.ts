/**
 * The voices of the embedded service: ids in the vendor's shape (the ids that LiveKit's plugins and the vendor's own
 * quick start default to are among them, so that they work unchanged), and how the engine makes each of them sound.
 */

export interface Voice {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  /** ISO 639-1 code that the voice speaks unless told otherwise. */
  readonly language: string;
  /** The engine's voice for that language and accent. */
  readonly engine: string;
  /** The engine's variant: the speaker, kept in whatever language the voice speaks. */
  readonly variant: string;
  /** Words a minute at speed 1. */
  readonly rate: number;
  /** Base pitch, 0-100. */
  readonly pitch: number;
  /** How much the pitch moves, 0-100. */
  readonly range: number;
  readonly labels: Readonly<Record<string, string>>;
}

type Gender = "male" | "female";
type Sound = Pick<Voice, "variant" | "rate" | "pitch" | "range">;

function voice(
  id: string,
  name: string,
  options: {
    readonly gender: Gender;
    readonly age: "young" | "middle_aged" | "old";
    readonly language: string;
    readonly accent: string;
    readonly engine: string;
    readonly useCase: string;
    readonly descriptive: string;
    readonly sound: Sound;
  },
): Voice {
  const { gender, age, language, accent, useCase, descriptive } = options;
  return {
    id,
    name,
    description: `A ${descriptive} ${age.replace("_", "-")} ${gender} voice (${accent}), by eSpeak NG.`,
    language,
    engine: options.engine,
    ...options.sound,
    labels: { accent, age, descriptive, gender, language, use_case: useCase },
  };
}

function sound(variant: string, rate: number, pitch: number, range: number): Sound {
  return { variant, rate, pitch, range };
}

export const VOICES: readonly Voice[] = [
  voice("21m00Tcm4TlvDq8ikWAM", "Nora", {
    gender: "female",
    age: "young",
    language: "en",
    accent: "american",
    engine: "en-us",
    useCase: "conversational",
    descriptive: "calm",
    sound: sound("f3", 172, 46, 45),
  }),
  voice("bIHbv24MWmeRgasZH58o", "Wes", {
    gender: "male",
    age: "young",
    language: "en",
    accent: "american",
    engine: "en-us",
    useCase: "conversational",
    descriptive: "relaxed",
    sound: sound("m3", 180, 58, 55),
  }),
  voice("hpp4J3VqNfWAUOO0d1Us", "Bea", {
    gender: "female",
    age: "middle_aged",
    language: "en",
    accent: "american",
    engine: "en-us",
    useCase: "informative_educational",
    descriptive: "bright",
    sound: sound("Annie", 176, 60, 65),
  }),
  voice("pNInz6obpgDQGcFmaJgB", "Amos", {
    gender: "male",
    age: "middle_aged",
    language: "en",
    accent: "american",
    engine: "en-us",
    useCase: "narrative_story",
    descriptive: "deep",
    sound: sound("m7", 158, 15, 35),
  }),
  voice("JBFqnCBsd6RMkjVDRZzb", "Giles", {
    gender: "male",
    age: "middle_aged",
    language: "en",
    accent: "british",
    engine: "en-gb-x-rp",
    useCase: "narrative_story",
    descriptive: "warm",
    sound: sound("m1", 164, 38, 55),
  }),
  voice("Xb7hH8MSUJpSbSDYk0k2", "Alma", {
    gender: "female",
    age: "middle_aged",
    language: "en",
    accent: "british",
    engine: "en",
    useCase: "informative_educational",
    descriptive: "clear",
    sound: sound("f4", 166, 40, 60),
  }),
  voice("SOYHLrjzK2X1ezoPC6cr", "Hamish", {
    gender: "male",
    age: "young",
    language: "en",
    accent: "scottish",
    engine: "en-gb-scotland",
    useCase: "characters_animation",
    descriptive: "lively",
    sound: sound("m5", 170, 70, 80),
  }),
  voice("EXAVITQu4vr4xnSDxMaL", "Sunny", {
    gender: "female",
    age: "young",
    language: "en",
    accent: "american",
    engine: "en-us-nyc",
    useCase: "entertainment_tv",
    descriptive: "quick",
    sound: sound("f5", 198, 72, 75),
  }),
  voice("iP95p4xoKVk53GoZ742B", "Cleve", {
    gender: "male",
    age: "middle_aged",
    language: "en",
    accent: "caribbean",
    engine: "en-029",
    useCase: "conversational",
    descriptive: "easy",
    sound: sound("m4", 162, 50, 70),
  }),
  voice("XrExE9yKIg1WjnnlVkGX", "Maud", {
    gender: "female",
    age: "old",
    language: "en",
    accent: "american",
    engine: "en-us",
    useCase: "narrative_story",
    descriptive: "gentle",
    sound: sound("steph", 150, 28, 40),
  }),
  ...nativeVoices(),
];

/** One voice each for the most used of the engine's other languages; any voice speaks the rest by language_code. */
function nativeVoices(): Voice[] {
  const rows: readonly (readonly [string, string, Gender, string, string, string, Sound])[] = [
    ["q4mWv7Lx2TzYcR9bKd1E", "Lucía", "female", "es", "castilian", "es", sound("f2", 170, 48, 55)],
    ["h8PdF3sJw6NkVt0XyB5u", "Mateo", "male", "es", "latin_american", "es-419", sound("m3", 172, 42, 55)],
    ["c2RzL9gTq5HvXm7KpW4a", "Élodie", "female", "fr", "parisian", "fr", sound("f4", 168, 50, 60)],
    ["t6YbN1xGd8KsQf3MvJ0o", "Jürgen", "male", "de", "standard", "de", sound("m1", 166, 36, 45)],
    ["w3KjV8pRz5CtLh2NxF9e", "Chiara", "female", "it", "standard", "it", sound("f3", 170, 52, 65)],
    ["m7QxS4dBv1GyTk6ZrH8i", "Caio", "male", "pt", "brazilian", "pt-br", sound("m5", 172, 48, 60)],
    ["z5HnC2wLf9PbVd4XgT7y", "Zosia", "female", "pl", "standard", "pl", sound("f5", 168, 44, 50)],
    ["r9TvK6mXs3JqBz1WcN5u", "Anton", "male", "ru", "standard", "ru", sound("m7", 166, 40, 50)],
    ["d4GyP7tZk2RwMh8LvQ3a", "Meera", "female", "hi", "standard", "hi", sound("f2", 168, 50, 55)],
    ["k1XfB5nVc8SjTd6YqR2o", "Meiling", "female", "zh", "standard", "cmn", sound("f3", 160, 50, 50)],
    ["p8LwH3zQv6DmKs9GxT4e", "Haruto", "male", "ja", "standard", "ja", sound("m3", 164, 48, 50)],
    ["v2NcR7kYd5XgWf1JbP6i", "Samir", "male", "ar", "standard", "ar", sound("m1", 164, 42, 50)],
  ];
  return rows.map(([id, name, gender, language, accent, engine, sounds]) =>
    voice(id, name, {
      gender,
      age: "middle_aged",
      language,
      accent,
      engine,
      useCase: "conversational",
      descriptive: "neutral",
      sound: sounds,
    }),
  );
}

export function findVoice(id: string): Voice | undefined {
  return VOICES.find((voice) => voice.id === id);
}

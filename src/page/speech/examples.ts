/** Texts to start with: an ordinary one, and the scripts and spellings where word timing is hard. */

export interface Example {
  readonly name: string;
  /** What it shows, for those who do not see the text. */
  readonly about: string;
  /** ISO 639-1. */
  readonly language: string;
  readonly text: string;
}

export const EXAMPLES: readonly [Example, ...Example[]] = [
  {
    name: "Hello",
    about: "a greeting",
    language: "en",
    text: "Good evening. Every word on this page lights up at the moment you hear it, because the sound and the text share one clock.",
  },
  {
    name: "Numbers",
    about: "numbers and abbreviations",
    language: "en",
    text: "Dr. Novak paid $1,234.56 on 3 May at 9:45 a.m., which is about 12% less than last year.",
  },
  {
    name: "Emoji",
    about: "emoji and accents",
    language: "en",
    text: "The naïve fiancée 👩🏽‍🚀 ordered a café au lait 🎉 and said: that’s it!",
  },
  {
    name: "Spanish",
    about: "Spanish",
    language: "es",
    text: "Buenas tardes. Cada palabra se ilumina en el momento en que la oyes.",
  },
  {
    name: "Arabic",
    about: "Arabic, right to left",
    language: "ar",
    text: "مساء الخير. كل كلمة تضيء في اللحظة التي تسمعها فيها.",
  },
  { name: "Chinese", about: "Chinese", language: "zh", text: "晚上好。你听到每个词的时候，它就会亮起来。" },
];

export const DIALOGUE_EXAMPLE: readonly string[] = [
  "Did you hear that? Every word lights up as I say it.",
  "I did! And now it is my turn, in another voice.",
  "Two voices, one clock.",
  "And not a word out of step.",
];

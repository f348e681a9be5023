/**
 * Answers of a language model as they came, token by token: the first lines of `examples/streams` in a form that a page
 * can carry.
 */

/** A token and when it came, ms after the first one. */
export interface TimedToken {
  readonly atMs: number;
  readonly text: string;
}

export interface Stream {
  readonly name: string;
  /** ISO 639-1. */
  readonly language: string;
  readonly tokens: readonly TimedToken[];
}

/** `joined`: the tokens with a broken bar between them; `gapsMs`: how long after the one before each came. */
function recorded(name: string, language: string, joined: string, gapsMs: readonly number[]): Stream {
  let atMs = 0;
  const tokens = joined.split("¦").map((text, index) => {
    atMs += gapsMs[index] ?? 0;
    return { atMs, text };
  });
  return { name, language, tokens };
}

export const STREAMS: readonly Stream[] = [
  recorded(
    "An answer in Markdown",
    "en",
    "##¦ Cold¦ brew¦ at¦ home¦\n\n¦It¦ takes¦ **¦five¦ minutes¦**¦ of¦ work¦ and¦ a¦ night¦ of¦ patience¦.¦ ☕️\n\n¦1¦.¦ Gr¦ind¦ 62¦.¦5¦ g¦ of¦ coffee¦,¦ as¦ co¦arse¦ as¦ sea¦ salt¦.\n¦2¦.¦ St¦ir¦ it¦ into¦ 1¦ litre¦ of¦ cold¦ water¦.\n¦3¦.¦ Wait¦ 12¦ hours¦,¦ then¦ str¦ain¦ it¦.\n\n¦Dr¦.¦ Lee¦,¦ a¦ food¦ chem¦ist¦ in¦ the¦ U¦.¦S¦.,¦ keeps¦ it¦ at¦ `¦4¦ °¦C¦`¦ for¦ up¦ to¦ 1¦.¦5¦ weeks¦.¦ There¦ is¦ more¦ in¦ [¦the¦ brew¦ing¦ guide¦](¦https¦://¦example¦.¦com¦/¦cold¦-¦brew¦?¦lang¦=¦en¦#¦ratio¦),¦ and¦ at¦ https¦://¦example¦.¦org¦/¦coffee¦.¦ Enjoy¦!¦ 👩¦‍¦🍳\n",
    [
      0, 30, 21, 24, 28, 33, 21, 22, 34, 60, 25, 26, 22, 33, 22, 23, 19, 19, 33, 24, 22, 20, 22, 44, 22, 43,
      30, 36, 21, 618, 1, 1, 1, 0, 2, 0, 34, 21, 25, 30, 27, 15, 22, 43, 21, 24, 36, 24, 18, 42, 25, 35, 41,
      17, 28, 23, 18, 16, 36, 24, 30, 33, 20, 32, 32, 21, 24, 34, 36, 20, 26, 28, 20, 22, 25, 654, 22, 22, 24,
      24, 22, 15, 29, 20, 37, 19, 23, 1, 0, 0, 35, 15, 34, 25, 30, 32, 24, 29, 27, 22, 40, 32, 15, 20, 25, 27,
      22, 21, 16, 19, 43, 35, 22, 23, 15, 25, 29, 21, 60, 29, 23, 31, 20, 622, 36, 23, 16, 18, 27, 18, 20, 35,
      17,
    ],
  ),
  recorded(
    "One side of a phone call",
    "en",
    "Hi¦,¦ this¦ is¦ Sam¦ from¦ Har¦bor¦ Dental¦.¦ You¦'re¦ booked¦ for¦ Tuesday¦,¦ March¦ 4¦th¦,¦ at¦ 9¦:¦45¦ a¦.¦m¦.¦ with¦ Dr¦.¦ Pat¦el¦.¦ Does¦ that¦ still¦ work¦ for¦ you¦?¦ Okay¦,¦ no¦ problem¦.¦ I¦ could¦ offer¦ you¦ 2¦:¦15¦ in¦ the¦ afternoon¦,¦ or¦ 10¦:¦30¦ on¦ Thursday¦.¦ It¦ takes¦ about¦ 40¦ minutes¦ and¦ costs¦ $¦85¦.¦50¦.¦ Great¦,¦ I¦'ve¦ moved¦ you¦ to¦ Thursday¦ at¦ 10¦:¦30¦.¦ If¦ anything¦ changes¦,¦ please¦ call¦ 555¦-¦014¦2¦.¦ Thanks¦,¦ and¦ good¦bye¦!",
    [
      0, 32, 40, 27, 43, 26, 37, 54, 27, 60, 30, 34, 29, 49, 23, 46, 31, 34, 23, 27, 60, 29, 47, 25, 40, 341,
      39, 0, 1, 0, 1, 1, 0, 35, 31, 26, 48, 44, 24, 35, 60, 34, 27, 37, 45, 26, 24, 33, 35, 34, 43, 29, 47,
      29, 17, 47, 46, 52, 32, 25, 26, 46, 24, 25, 29, 21, 1, 1, 0, 26, 37, 54, 24, 39, 35, 27, 27, 35, 24, 32,
      59, 37, 33, 33, 26, 34, 33, 44, 32, 60, 483, 34, 25, 29, 21, 41, 26, 44, 53, 29, 41, 33, 28, 41, 60, 21,
    ],
  ),
  recorded(
    "Mint tea, in Arabic",
    "ar",
    "مرحب¦ًا¦!¦ شكر¦ًا¦ على¦ سؤالك¦.¦ لت¦حضي¦ر¦ ال¦شاي¦ بال¦نع¦نا¦ع¦،¦ سخ¦ّن¦ نصف¦ لتر¦ من¦ ال¦ماء¦ حتى¦ يغ¦لي¦،¦ ثم¦ أضف¦ ملع¦قتين¦ صغي¦رت¦ين¦ من¦ الش¦اي¦ ال¦أخض¦ر¦.¦ انتظ¦ر¦ ثل¦اث¦ دق¦ائق¦،¦ وب¦عد¦ ذلك¦ ضع¦ 10¦ أورا¦ق¦ من¦ ال¦نعن¦اع¦ الطا¦زج¦ وقلي¦لً¦ا¦ من¦ ال¦سك¦ر¦.¦ هل¦ تف¦ضّله¦ حل¦وًا¦؟¦ أضف¦ مل¦عقة¦ أخ¦رى¦.¦ قدّ¦مه¦ ساخن¦ًا¦ في¦ أكو¦اب¦ صغير¦ة¦،¦ وسي¦كف¦ي¦ أر¦بع¦ة¦ أش¦خاص¦.¦ بال¦هناء¦ وال¦شفا¦ء¦!",
    [
      0, 28, 17, 35, 39, 21, 36, 22, 41, 18, 34, 38, 23, 18, 21, 51, 33, 38, 25, 24, 29, 32, 27, 28, 16, 1, 0,
      2, 0, 463, 1, 28, 33, 20, 25, 35, 28, 18, 35, 23, 24, 23, 17, 24, 60, 39, 27, 25, 30, 29, 36, 22, 22,
      29, 20, 21, 37, 33, 38, 48, 20, 20, 26, 28, 30, 31, 1, 0, 1, 20, 26, 38, 27, 21, 26, 31, 30, 39, 32, 28,
      33, 22, 27, 26, 29, 26, 30, 23, 24, 41, 20, 17, 23, 24, 35, 36, 20, 19, 37, 895, 18, 29, 29, 24, 21, 30,
      19, 29,
    ],
  ),
];

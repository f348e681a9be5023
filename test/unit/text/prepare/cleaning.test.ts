import { describe, expect, it } from "vitest";
import { prepared, said } from "./prepared.ts";

describe("cleaning Markdown", () => {
  it.each([
    ["# Title\ntext", "Title.\ntext"],
    ["### Is it so? ###\ntext", "Is it so?\ntext"],
    ["#tag and C# and # alone", "#tag and C# and # alone"],
    ["####### seven", "####### seven"],
    ["**bold** *it* __b__ _i_ ~~gone~~ ***both*** x", "bold it b i gone both x"],
    ["**Note:** and **nested *one* here**.", "Note: and nested one here."],
    [
      "2 * 3 = 6, 2*3*4, a_b, snake_case_name, 5 ~ 6, ~5",
      "2 * 3 = 6, 2*3*4, a_b, snake_case_name, 5 ~ 6, ~5",
    ],
    ["**2*3** and **bold**ly", "2*3 and boldly"],
    ["un**believ**able, 12**th** and foo**bar baz**.", "unbelievable, 12th and foobar baz."],
    ["x**2 and 2**3 and 4**5, a**b", "x**2 and 2**3 and 4**5, a**b"],
    ["**all un**bold and on**e\ntw**o", "all unbold and on**e\ntw**o"],
    ["a**b `c**d` e", "a**b c**d e"],
    ["a**b `c**d` e**f, ``g`**`` on", "ab c**d ef, g`** on"],
    ["a**b ` c**d", "ab ` cd"],
    ["a**b `` c**d `e`", "ab `` cd e"],
    ["a**b \\`c**d\\` e", "ab `cd` e"],
    ["a**b ` c\n**d` e", "a**b ` c\nd` e"],
    ["rated 5* or C*", "rated 5* or C*"],
    ["this is `code_with *marks*` here", "this is code_with *marks* here"],
    ["``a`b`` and ` alone", "a`b and ` alone"],
    ["> quoted\n> > twice", "quoted\ntwice"],
    ["- one\n* two\n+ three!\n  - four", "one.\ntwo.\nthree!\nfour."],
    ["- [ ] open\n- [x] closed", "open.\nclosed."],
    ["1. Milk\n2) Eggs\n\n3.14 is pi", "1. Milk.\n2) Eggs.\n\n3.14 is pi"],
    ['- He said "yes"\n- (maybe)\n- **sure**  \n- so:', 'He said "yes".\n(maybe).\nsure.  \nso:'],
    ["- Milk\r\n- Eggs\r\n", "Milk.\r\nEggs.\r\n"],
    ["a\n\n---\n* * *\n___\nb", "a\n\n\n\n\nb"],
    ["Title\n=====\ntext", "Title\n\ntext"],
    ["-5 degrees, +49 call", "-5 degrees, +49 call"],
    ['[the text](https://x.com/a_(b) "title").', "the text."],
    ["![a *red* car](car.png) [laughs] [1]", "a red car [laughs] [1]"],
    ["[![badge](b.svg)](https://x.com) [](y)z", "badge z"],
    ["[laughs](softly) a[0](b", "laughs a[0](b"],
    ["so[^1] it is", "so it is"],
    ["| a | b |\n|---|:-:|\n| 1 | **2** |\n| x. | |\nend", "a, b.\n1, 2.\nx.\nend"],
    ["|x| is absolute, a | b", "|x| is absolute, a | b"],
    ["a <!-- not *this*\nnor this -->b", "a b"],
    ["\\*no\\* 1\\. C:\\dir", "*no* 1. C:\\dir"],
    ["```js\nlet a_b = *c*;\n```\nend", "let a_b = *c*;\nend"],
    ["# 标题\n- 苹果\n这是**重要**的。**“好”**的", "标题。\n苹果。\n这是重要的。“好”的"],
    ["# عنوان\n- **خبز**\n* حليب؟", "عنوان.\nخبز.\nحليب؟"],
    ["## शीर्षक\n- दूध\n- यह **बहुत** अच्छा है।", "शीर्षक।\nदूध।\nयह बहुत अच्छा है।"],
    ["# หัวข้อ\n- นม\nนี่**สำคัญ**มาก", "หัวข้อ.\nนม.\nนี่สำคัญมาก"],
  ])("says %j as %j", (text, expected) => {
    expect(said(text, ["markdown"])).toBe(expected);
  });

  it("maps what is said to the client's text", () => {
    const { spans } = prepared(["- **Hi**\n"], { clean: ["markdown"], replacements: [] });
    expect(spans.map((p) => [p.spokenStart, p.spokenEnd, p.clientStart, p.clientEnd, p.isSame])).toEqual([
      [0, 0, 0, 4, false],
      [0, 2, 4, 6, true],
      [2, 2, 6, 8, false],
      [2, 3, 8, 8, false],
      [3, 4, 8, 9, true],
    ]);
  });
});

describe("cleaning code", () => {
  it.each([
    ["a\n```js\n<b>let a;</b>\n```\nb", "a\nb"],
    ["a\n~~~\n```\n~~~\nb", "a\nb"],
    ["a\n````\n```\n````\nb `c`", "a\nb c"],
    ["a\n```js\nnever closed", "a\n"],
    ["use ```x``` so", "use x so"],
    ["**as it is**", "**as it is**"],
    ["看\n```\n代码\n```\n`变量`好", "看\n变量好"],
  ])("says %j as %j", (text, expected) => {
    expect(said(text, ["code"])).toBe(expected);
  });
});

describe("cleaning addresses", () => {
  it.each([
    ["See https://www.example.com/a/b?c=d#e. Next", "See example dot com. Next"],
    ["HTTP://Example.COM:8080, www.x.org!", "Example dot COM, x dot org!"],
    ["(see https://en.wikipedia.org/wiki/A_(b)) ok", "(see en dot wikipedia dot org) ok"],
    ['<https://x.com/a> "http://y.com"', '<x dot com> "y dot com"'],
    ["http://user:pass@x.com/ http://127.0.0.1/", "x dot com 127 dot 0 dot 0 dot 1"],
    [
      "Mail ann@example.com, or ann.lee+x@a.co.uk.",
      "Mail ann at example dot com, or ann dot lee+x at a dot co dot uk.",
    ],
    ["_ann@x.com_ @ann a@b foo@", "_ann at x dot com_ @ann a@b foo@"],
    ["http:// www. xhttp://a.b awww.x.com", "http:// www. xhttp://a.b awww.x.com"],
    ["https://ru.wikipedia.org/wiki/Москва, да", "ru dot wikipedia dot org, да"],
    ["请看https://example.com/a。邮箱ann@x.cn吧", "请看example dot com。邮箱ann at x dot cn吧"],
    ["انظر https://example.com/a، شكرا", "انظر example dot com، شكرا"],
    ["देखें https://example.com/a।", "देखें example dot com।"],
    ["ดูhttps://example.com/aนะ", "ดูexample dot comนะ"],
    ['<a href="https://x.com">', '<a href="https://x.com">'],
  ])("says %j as %j", (text, expected) => {
    expect(said(text, ["urls"])).toBe(expected);
  });
});

describe("cleaning emoji", () => {
  it.each([
    ["Hi 😀 there", "Hi there"],
    ["Hi 😀! Ok👍🏽.", "Hi! Ok."],
    ["😀 Hello 🎉🎉 🎊 you 👋", "Hello you"],
    ["a😀b", "a b"],
    ["👨‍👩‍👧‍👦 x 🏳️‍🌈 y ❤️‍🔥 z 🏴󠁧󠁢󠁥󠁮󠁧󠁿", "x y z"],
    ["🇩🇪🇫🇷 and 1️⃣ #️⃣ 2", "and 2"],
    ["1 2 # * © ® ™ → ↔ ❤ ☺ © ⌚\ufe0e", "1 2 # * © ® ™ → ↔ ❤ ☺ © ⌚\ufe0e"],
    ["➡️ ❤️ ☺️ x", "x"],
    ["a\n😀 b", "a\nb"],
    ["你好😀世界🎉。", "你好世界。"],
    ["مرحبا 😀 بك🎉،", "مرحبا بك،"],
    ["नमस्ते 🙏 दोस्त 🎉।", "नमस्ते दोस्त।"],
    ["สวัสดี😀ครับ", "สวัสดีครับ"],
    ["[😀] <b a='😀'>", "[😀] <b a='😀'>"],
  ])("says %j as %j", (text, expected) => {
    expect(said(text, ["emoji"])).toBe(expected);
  });

  it("with headings and items the full stop stands close", () => {
    expect(said("## Go 🎉\n- Milk 🥛\n- 🥚 Eggs 🥚", ["emoji", "markdown"])).toBe("Go.\nMilk.\nEggs.");
  });
});

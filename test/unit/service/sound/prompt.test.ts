import { describe, expect, it } from "vitest";
import { readPrompt } from "../../../../src/service/sound/prompt.ts";

const names = (text: string) => readPrompt(text).steps.map((step) => step.map((sound) => sound.name));
function only(text: string) {
  const [step] = readPrompt(text).steps;
  expect(step).toHaveLength(1);
  return step?.[0];
}

describe("a prompt", () => {
  it.each([
    ["Heavy rain on a tin roof", "rain"],
    ["a thunderclap", "thunder"],
    ["gusts of icy wind", "wind"],
    ["ocean waves breaking on the shore", "sea"],
    ["a mountain river", "stream"],
    ["crackling fireplace", "fire"],
    ["a huge explosion", "explosion"],
    ["two gunshots", "gunshot"],
    ["the bang of a pistol", "gunshot"],
    ["footsteps on gravel", "footsteps"],
    ["someone walking", "footsteps"],
    ["a knock on the door", "knock"],
    ["an old door creaking", "creak"],
    ["a door slams shut", "slam"],
    ["church bells", "bell"],
    ["wind chimes", "chime"],
    ["a temple gong", "gong"],
    ["clock ticking", "clock"],
    ["breaking glass", "glass"],
    ["a window shatters", "glass"],
    ["car engine running", "engine"],
    ["police siren", "siren"],
    ["an alarm clock ringing", "alarm"],
    ["telephone ringing", "phone"],
    ["short beeps", "beep"],
    ["UI button click", "click"],
    ["a swooshing swoosh", "whoosh"],
    ["sci-fi zap", "laser"],
    ["birds chirping", "bird"],
    ["dogs barking", "dog"],
    ["a cat meowing", "cat"],
    ["crickets at night", "cricket"],
    ["an audience clapping", "applause"],
    ["heart beating", "heartbeat"],
    ["typing on a keyboard", "typing"],
    ["drum beat", "drum"],
    ["kick drum", "kick"],
    ["snare drum", "snare"],
    ["spaceship ambience", "drone"],
    ["radio static noise", "radioNoise"],
    ["water dripping", "drop"],
    ["bubbles in water", "bubbles"],
    ["a piano melody", "piano"],
    ["strumming an acoustic guitar", "guitar"],
    ["a violin", "violin"],
    ["flute music", "flute"],
    ["a trumpet fanfare", "trumpet"],
    // Of the official client's example.
    ["a spacious braam", "trumpet"],
    ["drums", "drumKit"],
    ["a drum kit", "drumKit"],
    ["church organ", "organ"],
    ["children laughing", "laugh"],
    ["a horse galloping", "gallop"],
    ["a horse", "horse"],
    ["a baby crying", "cry"],
    ["someone snoring", "snore"],
    ["perros ladrando", "dog"],
    ["una guitarra", "guitar"],
    ["la risa de un niño", "laugh"],
    ["un caballo al galope", "gallop"],
    ["olas del océano", "sea"],
    ["صوت المطر", "rain"],
    ["ضحك الأطفال", "laugh"],
    ["عزف بيانو", "piano"],
    ["狗叫", "dog"],
    ["下大雨的声音", "rain"],
    ["弹钢琴", "piano"],
    ["婴儿在哭", "cry"],
    ["马蹄声", "gallop"],
  ])("%j is %s", (text, name) => {
    expect(names(text)).toEqual([[name]]);
  });

  it("a prompt for several sounds has them together, or one after another where it says so", () => {
    expect(names("rain and thunder with distant wind")).toEqual([["rain", "thunder", "wind"]]);
    expect(names("thunder then rain")).toEqual([["thunder"], ["rain"]]);
    expect(names("a knock, followed by a creaking door, and then footsteps")).toEqual([
      ["knock"],
      ["creak"],
      ["footsteps"],
    ]);
    expect(names("applause after an explosion")).toEqual([["explosion"], ["applause"]]);
    expect(names("a beep before the siren")).toEqual([["beep"], ["siren"]]);
    expect(names("then rain then")).toEqual([["rain"]]);
    expect(names("thunder, after that rain")).toEqual([["thunder"], ["rain"]]);
    expect(names("truenos y luego lluvia")).toEqual([["thunder"], ["rain"]]);
    expect(names("aplausos después de una explosión")).toEqual([["explosion"], ["applause"]]);
    expect(names("مطر ورعد ثم بكاء")).toEqual([["rain", "thunder"], ["cry"]]);
    expect(names("下雨之前打雷")).toEqual([["thunder"], ["rain"]]);
    expect(names("打雷和下雨，然后狗叫")).toEqual([["thunder", "rain"], ["dog"]]);
  });

  it("gives each word to the sound it is said of", () => {
    const [step] = readPrompt("loud deep thunder and soft rain, footsteps on wood").steps;
    expect(step?.map(({ name, changes }) => [name, changes])).toEqual([
      ["thunder", [{ gain: 2 }, { pitch: 0.6 }]],
      ["rain", [expect.objectContaining({ gain: 0.4 })]],
      ["footsteps", [{ surface: "wood" }]],
    ]);
    expect(only("big and loud explosion")?.changes).toHaveLength(2);
    expect(only("dog barking in the distance")?.changes).toEqual([expect.objectContaining({ topHz: 1300 })]);
  });

  it("takes what is said to be missing for missing", () => {
    expect(names("rain without thunder and a bell")).toEqual([["rain", "bell"]]);
    expect(names("no rain")).toEqual([]);
  });

  it("names what it does not understand, as it is written, once", () => {
    const unknown = (text: string) => readPrompt(text).unknownWords;
    expect(unknown("Heavy rain on a tin roof, then three loud knocks")).toEqual(["roof"]);
    expect(unknown("A naïve zorble barks at the Zorble 🎉")).toEqual(["naïve", "zorble", "🎉"]);
    expect(unknown("un perro ladrando en el jardín")).toEqual(["jardín"]);
    expect(unknown("صوت المطر على السقف")).toEqual(["السقف"]);
    expect(unknown("屋顶上的雨")).toEqual(["屋顶"]);
    expect(names("qwrtz plmk")).toEqual([]);
    expect(names("")).toEqual([]);
  });

  it.each([
    ["20 seconds of rain", ["20", "seconds"]],
    ["three rains and a bell", ["three"]],
    ["two or three knocks", ["or", "three"]],
    ["knock 7", []],
    ["7, a knock", ["7"]],
    ["2 bells and 5 bells", ["5"]],
    ["0 gunshots", ["0"]],
    ["999 gunshots", ["999"]],
    ["64 gunshots", []],
    ["cinco lluvias", ["cinco"]],
    ["三下雨", ["三"]],
    ["wooden footsteps and a metallic dog", ["metallic"]],
    ["a drum on wood, fast rain, fast knocks", ["wood", "fast"]],
    ["footsteps on snow and gravel", ["snow"]],
    ["footsteps on wet gravel", ["wet"]],
    ["long rain, deep wind, a dense forest fire", ["forest"]],
    ["loud, then rain", ["loud"]],
    ["rain, thunder, wind, fire, sea, bell, dog, cat, sirens", ["sirens"]],
  ])("names what it understands and does not do: %s", (text, words) => {
    expect(readPrompt(text).unknownWords).toEqual(words);
  });

  it.each([
    ["a long rain", ["long"]],
    ["short wind, brief rain", ["short", "brief"]],
    ["una lluvia larga", ["larga"]],
    ["long typing", ["long"]],
    ["a long bell, big rain", []],
    ["a long rain, then wind", []],
  ])("of a given length, a word that only makes a sound longer or shorter is named: %s", (text, words) => {
    expect(readPrompt(text, { isLengthGiven: true }).unknownWords).toEqual(words);
    expect(readPrompt(text).unknownWords).toEqual([]);
  });

  it.each([
    ["two barks", 2],
    ["dos disparos", 2],
    ["三声枪响", 3],
    ["ثلاث طلقات", 3],
  ])("%s: %d", (text, count) => {
    expect(only(text)?.count).toBe(count);
  });

  it.each([
    ["deep bell", "campana grave"],
    ["distant thunder", "trueno lejano"],
    ["a small dog", "كلب صغير"],
    ["a fast clock", "快速的时钟"],
    ["a bell in a cave", "山洞里的钟声"],
  ])("%s is %s", (english, other) => {
    expect({ ...readPrompt(other), unknownWords: [] }).toEqual(readPrompt(english));
    expect(readPrompt(other).unknownWords).toEqual([]);
  });

  it("counts, and knows again and again from once", () => {
    expect(only("three knocks")?.count).toBe(3);
    expect(only("a door is knocked twice")?.count).toBe(2);
    expect(only("12 gunshots")?.count).toBe(12);
    expect(only("999 gunshots")?.count).toBe(64);
    expect(only("gunshots")).toMatchObject({ count: null, isRepeated: true });
    expect(only("a gunshot")).toMatchObject({ count: null, isRepeated: false });
  });

  it("keeps the place for all sounds", () => {
    const prompt = readPrompt("dripping water and footsteps in a cave");
    expect(prompt.placeChanges).toEqual([{ echoSeconds: 3.2, isPlace: true }]);
    expect(prompt.steps.flat().flatMap(({ changes }) => changes)).toEqual([]);
  });

  it("a prompt for many sounds is held to eight", () => {
    const text = "rain, thunder, wind, fire, sea, bell, dog, cat, siren, drum then clock then bird";
    expect(names(text).flat()).toHaveLength(8);
  });
});

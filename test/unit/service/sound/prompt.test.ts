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
    ["qwrtz plmk", "neutral"],
    ["", "neutral"],
  ])("%j is %s", (text, name) => {
    expect(names(text)).toEqual([[name]]);
  });

  it("of several sounds has them together, or one after another where it says so", () => {
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

  it("of many sounds is held to eight", () => {
    const text = "rain, thunder, wind, fire, sea, bell, dog, cat, siren, drum then clock then bird";
    expect(names(text).flat()).toHaveLength(8);
  });
});

import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../../src/errors.ts";
import {
  isVoicePackageInstalled,
  requireVoicePackage,
} from "../../../../src/service/voice/engine/package.ts";

describe("requireVoicePackage()", () => {
  it("says which command mends a missing package", () => {
    const elsewhere = "file:///nowhere/at/all/module.js";
    expect(isVoicePackageInstalled(elsewhere)).toBe(false);
    let thrown: unknown;
    try {
      requireVoicePackage(elsewhere);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(GatewayError);
    expect(thrown).toMatchObject({ code: "voice_package_missing" });
    expect(String(thrown)).toContain("npm install @echogarden/espeak-ng-emscripten");
  });
  it("finds the installed one", () => {
    expect(isVoicePackageInstalled()).toBe(true);
    expect(() => requireVoicePackage()).not.toThrow();
  });
});

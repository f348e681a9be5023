import { describe, expect, it } from "vitest";
import { liveUrl } from "../../../src/client/address.ts";

describe("liveUrl()", () => {
  it("turns http into ws and https into wss", () => {
    expect(liveUrl("http://127.0.0.1:8080", { session: "a" })).toBe("ws://127.0.0.1:8080/live/a");
    expect(liveUrl("https://voice.example", { session: "a" })).toBe("wss://voice.example/live/a");
    expect(liveUrl("wss://voice.example/", { session: "a" })).toBe("wss://voice.example/live/a");
  });

  it("keeps a path prefix, escapes the session and drops query and fragment", () => {
    expect(liveUrl("http://h/voice/?x=1#y", { session: "a b/c" })).toBe("ws://h/voice/live/a%20b%2Fc");
  });

  it("writes settings as the query that the gateway reads", () => {
    const url = new URL(
      liveUrl("ws://h", {
        session: "s",
        settings: { role: "listener", format: "ulaw_8000", frame_ms: 20, events: ["words", "marks"] },
      }),
    );
    expect(Object.fromEntries(url.searchParams)).toEqual({
      role: "listener",
      format: "ulaw_8000",
      frame_ms: "20",
      events: "words,marks",
    });
  });

  it("throws TypeError where the base is no URL", () => {
    expect(() => liveUrl("not a url", { session: "s" })).toThrow(TypeError);
  });
});

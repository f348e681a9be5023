import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../src/errors.ts";
import { parseCommand } from "../../../src/protocol/commands.ts";
import { errorBody } from "../../../src/protocol/events.ts";

describe("parseCommand()", () => {
  it("reads every command as it was sent", () => {
    const commands = [
      {
        type: "speak",
        text: "Hi",
        utterance_id: "u-1",
        voice_id: "v",
        voice_settings: { speed: 1.1 },
        seed: 5,
      },
      { type: "text", text: " tok" },
      { type: "flush" },
      { type: "end", utterance_id: "u-1" },
      { type: "dialogue", inputs: [{ text: "a", voice_id: "v" }], settings: { stability: 0.5 } },
      { type: "interrupt", keep_ms: 120 },
      { type: "mark", name: "m" },
      { type: "played", at_ms: 12.5, seq: 3 },
      { type: "configure", format: "opus_48000", events: ["words"] },
      { type: "ping", id: "x" },
      { type: "close" },
    ];
    for (const command of commands) {
      expect(parseCommand(JSON.stringify(command))).toEqual({ command, ignored: [] });
    }
  });

  it("names unknown fields and leaves them out", () => {
    expect(parseCommand('{"type":"flush","why":1,"when":2}')).toEqual({
      command: { type: "flush" },
      ignored: ["why", "when"],
    });
  });

  it("refuses rules with what no text may hold: it would be said in the middle of one", () => {
    const rule = (from: string, to: string) =>
      JSON.stringify({ type: "speak", text: "a", replacements: [{ from, to }] });
    for (const [bad, field] of [
      [rule("a", "b\0"), "to"],
      [rule("a", "\ud83d"), "to"],
      [rule("\ude00", "b"), "from"],
      [rule("\u0085", "b"), "from"],
    ] as const) {
      expect(() => parseCommand(bad)).toThrow(
        expect.objectContaining({ code: "invalid_field", field: `replacements.0.${field}` }),
      );
    }
    expect(parseCommand(rule("😀\n", "\t\r\n😀")).command.type).toBe("speak");
  });

  it("answers any text with a command or a GatewayError, never with anything else", () => {
    const check = (text: string): void => {
      try {
        expect(typeof parseCommand(text).command.type).toBe("string");
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(GatewayError);
        expect([
          "malformed_json",
          "unknown_type",
          "invalid_field",
          "unknown_format",
          "unknown_event",
        ]).toContain((thrown as GatewayError).code);
      }
    };
    fc.assert(fc.property(fc.string(), check));
    fc.assert(fc.property(fc.json(), check));
    const types = fc.constantFrom(
      "speak",
      "text",
      "dialogue",
      "configure",
      "played",
      "__proto__",
      "constructor",
    );
    fc.assert(
      fc.property(
        types,
        fc.dictionary(fc.constantFrom("text", "inputs", "format", "at_ms", "x"), fc.jsonValue()),
        (type, fields) => check(JSON.stringify({ ...fields, type })),
      ),
    );
  });

  it("never repeats the client's text in an error", () => {
    try {
      parseCommand('{"type":"speak","text":["my secret"]}');
      expect.unreachable();
    } catch (thrown) {
      expect((thrown as Error).message).not.toContain("secret");
    }
  });
});

describe("JSON.stringify()", () => {
  it("is UTF-8 JSON of the event", () => {
    const event = { type: "mark", seq: 1, at_ms: 0.5, name: "é😀", source: "estimate" } as const;
    expect(JSON.parse(JSON.stringify(event))).toEqual(event);
  });
});

describe("errorBody()", () => {
  it("carries code, message, retryable and what is known besides", () => {
    const error = new GatewayError("queue_full", "Queue is full", { retryAfterMs: 1000, field: "f" });
    expect(errorBody(error)).toEqual({
      code: "queue_full",
      message: "Queue is full",
      retryable: true,
      retry_after_ms: 1000,
      field: "f",
    });
  });
});

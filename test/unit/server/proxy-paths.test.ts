/** Which requests the proxy passes on, and which paths it refuses to read. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../src/errors.ts";
import { PASSED_ON, PassedPaths } from "../../../src/server/proxy/proxy-paths.ts";

const paths = new PassedPaths("");

function outcomeOf(method: string, path: string, query = "", passed = paths): string {
  try {
    passed.check({ method, path, query });
    return "passed on";
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown.code;
    throw thrown;
  }
}

/** The rows of docs/endpoints.md as `METHOD /path`, without the service's own section. */
function documentedEndpoints(): string[] {
  const page = readFileSync(new URL("../../../docs/endpoints.md", import.meta.url), "utf8");
  const [vendors = ""] = page.split("## The service's own");
  return [...vendors.matchAll(/^\| (GET|POST|PUT|PATCH|DELETE) \| `([^`]+)` \|/gm)].map(
    ([, method, path]) => `${method} ${path}`,
  );
}

describe("PassedPaths", () => {
  it("has every endpoint of docs/endpoints.md, and no other but its description", () => {
    const documented = documentedEndpoints();
    expect(documented.length).toBeGreaterThan(30);
    const others = PASSED_ON.filter((pattern) => !documented.includes(pattern));
    expect(documented.filter((endpoint) => !PASSED_ON.includes(endpoint))).toEqual([]);
    expect(others).toEqual(["GET /openapi.json"]);
  });

  it("has each endpoint in one part", () => {
    expect(new Set(PASSED_ON).size).toBe(PASSED_ON.length);
    expect(paths.check({ method: "POST", path: "/v1/history/download", query: "" })).toBe("history.read");
    const more = new PassedPaths("GET /v1/dubbing/{id}");
    const part = more.check({ method: "HEAD", path: "/v1/dubbing/7", query: "" });
    expect(part).toBe("passthrough:GET /v1/dubbing/{id}");
  });

  it("every listed pattern passes a request of its own form, and GET passes HEAD", () => {
    for (const pattern of PASSED_ON) {
      const [method = "", path = ""] = pattern.split(" ");
      const asked = path.replace(/\{\w+\}/g, "21m00Tcm4TlvDq8ikWAM");
      expect(`${pattern}: ${outcomeOf(method, asked)}`).toBe(`${pattern}: passed on`);
    }
    expect(outcomeOf("HEAD", "/v1/models")).toBe("passed on");
  });

  it.each([
    ["POST", "/v1/service-accounts/1/api-keys"],
    ["DELETE", "/v1/service-accounts/1/api-keys/2"],
    ["POST", "/v1/workspace/invites/add"],
    ["POST", "/v1/workspace/members"],
    ["POST", "/v1/convai/twilio/outbound-call"],
    ["POST", "/v1/convai/agents/create"],
    ["POST", "/v1/dubbing"],
    ["POST", "/v1/studio/projects"],
    ["DELETE", "/v1/models"],
    ["POST", "/v1/user"],
    ["HEAD", "/v1/sound-generation"],
    ["OPTIONS", "/v1/models"],
    ["POST", "/v1/text-to-speech/v/stream/other"],
    ["POST", "/v1/text-to-speech/v/stream/"],
    ["POST", "/v1/%73ound-generation"],
    ["GET", "/v1/Models"],
    ["GET", "/v1/"],
    ["GET", "/v3/models"],
  ])("does not pass %s %s on", (method, path) => {
    expect(outcomeOf(method, path)).toBe("not_found");
  });

  it.each([
    "/v1/../admin",
    "/v1/voices/..",
    "/v1/voices/.",
    "/v1/./voices",
    "/v1/%2e%2e/admin",
    "/v1/%2E./admin",
    "/v1/voices/%2e",
    "/v1/%252e%252e/admin",
    "/v1/%25252e/admin",
    "/v1/%c0%ae%c0%ae/admin",
    "/v1/%e0%80%ae/admin",
    "/v1/..;a=b/admin",
    "/v1//voices",
    "//v1/voices",
    "/v1/voices\\..\\admin",
    "/v1/voices%2fv",
    "/v1/voices%2Fv",
    "/v1/voices%5cv",
    "/v1/voices%252fv",
    "/v1/voices/%00",
    "/v1/voices/%0d%0aa",
    "/v1/voices/%7f",
    "/v1/voices/%c2%85",
    "/v1/voices/\u0001",
    "/v1/voices/\u00fc",
    "/v1/voices/%",
    "/v1/voices/%2",
    "/v1/voices/%zz",
    "/v1/voices/%ff",
  ])("refuses to read %j", (path) => {
    expect(outcomeOf("GET", path)).toBe("invalid_path");
    expect(outcomeOf("GET", path, "", new PassedPaths("GET /v1/*"))).toBe("invalid_path");
  });

  it("refuses a query that no request line can carry", () => {
    expect(outcomeOf("GET", "/v1/voices", "search=\u00fc")).toBe("invalid_path");
    expect(outcomeOf("GET", "/v1/voices", "search=%C3%BC&path=../%2e")).toBe("passed on");
  });

  it("the setting adds patterns: one segment for {id}, all below for * at the end", () => {
    const more = new PassedPaths(" GET /v1/dubbing/{id},POST  /v1/studio/* ,");
    expect(outcomeOf("GET", "/v1/dubbing/7", "", more)).toBe("passed on");
    expect(outcomeOf("GET", "/v1/dubbing/7/audio", "", more)).toBe("not_found");
    expect(outcomeOf("POST", "/v1/studio/projects/3/convert", "", more)).toBe("passed on");
    expect(outcomeOf("POST", "/v1/studio", "", more)).toBe("not_found");
    expect(outcomeOf("GET", "/v1/studio/projects", "", more)).toBe("not_found");
    expect(outcomeOf("GET", "/v1/models", "", more)).toBe("passed on");
  });

  it.each([
    "/v1/dubbing",
    "get /v1/dubbing",
    "TRACE /v1/dubbing",
    "GET /service/faults",
    "GET /v1/../x",
    "GET /v1/a*",
    "GET /v1/(a+)+",
  ])("a setting of %j stops the start", (setting) => {
    expect(() => new PassedPaths(setting)).toThrow(expect.objectContaining({ code: "invalid_config" }));
  });
});

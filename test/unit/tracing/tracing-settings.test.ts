import { describe, expect, it } from "vitest";
import { tracingSettings } from "../../../src/tracing/tracing-settings.ts";

describe("where traces go", () => {
  it("is nowhere unless a collector is named", () => {
    expect(tracingSettings("", {})).toBeNull();
    expect(tracingSettings("http://c:4318", { OTEL_SDK_DISABLED: "true" })).toBeNull();
    expect(tracingSettings("http://c:4318", { OTEL_TRACES_EXPORTER: "none" })).toBeNull();
  });

  it.each([
    ["http://c:4318", {}, "http://c:4318/v1/traces"],
    ["https://c/otlp/", {}, "https://c/otlp/v1/traces"],
    ["", { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://d/in" }, "http://d/in"],
    ["http://c:4318", { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://d/in?a=b" }, "http://d/in?a=b"],
  ])("%s and %j is %s", (endpoint, env, url) => {
    expect(tracingSettings(endpoint, env)?.url).toBe(url);
  });

  it("reads headers, resource, name and bounds as OpenTelemetry does", () => {
    const settings = tracingSettings("http://c", {
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20x, x-a=1",
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: "x-a=2",
      OTEL_RESOURCE_ATTRIBUTES: "service.name=from-attributes,deployment.environment.name=prod",
      OTEL_SERVICE_NAME: "voices",
      OTEL_EXPORTER_OTLP_TIMEOUT: "5000",
      OTEL_BSP_SCHEDULE_DELAY: "100",
      OTEL_BSP_MAX_QUEUE_SIZE: "",
    });
    expect(settings).toMatchObject({
      headers: { authorization: "Bearer x", "x-a": "2" },
      resource: { "service.name": "voices", "deployment.environment.name": "prod" },
      timeoutMs: 5000,
      delayMs: 100,
      maxQueued: 2048,
      maxBatch: 512,
    });
    expect(tracingSettings("http://c", {})?.resource).toEqual({ "service.name": "voicewire" });
  });

  it.each([
    ["c:4318", {}, "otlp-endpoint"],
    ["not a url", {}, "otlp-endpoint"],
    ["http://c", { OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, "OTEL_EXPORTER_OTLP_PROTOCOL"],
    ["http://c", { OTEL_EXPORTER_OTLP_HEADERS: "secret" }, "OTEL_EXPORTER_OTLP_HEADERS"],
    ["http://c", { OTEL_RESOURCE_ATTRIBUTES: "a=%E0%A4%A" }, "OTEL_RESOURCE_ATTRIBUTES"],
    ["http://c", { OTEL_BSP_MAX_QUEUE_SIZE: "-1" }, "OTEL_BSP_MAX_QUEUE_SIZE"],
    ["http://c", { OTEL_TRACES_SAMPLER: "jaeger_remote" }, "OTEL_TRACES_SAMPLER"],
  ])("%s and %j is refused, with the field and without the value of a secret", (endpoint, env, field) => {
    const read = () => tracingSettings(endpoint, env);
    expect(read).toThrow(expect.objectContaining({ code: "invalid_config", field }));
    expect(read).not.toThrow(/secret/);
  });
});

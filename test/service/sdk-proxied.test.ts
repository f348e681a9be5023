/** The same conformance through the gateway: what it passes on is what the service said, and only it has the key. */
process.env.VOICEWIRE_SDK_THROUGH = "gateway";
await import("./sdk.test.ts");
await import("./sdk-rest.test.ts");
await import("./pronunciation-dictionaries.test.ts");

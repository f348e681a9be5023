/** What the watch over logs of tests finds: each kind of leak, and nothing else. */
import { expect, it } from "vitest";
import { newStaticKey } from "../../src/access/keys.ts";
import { SPEAKER, tokenFor } from "./key-file.ts";
import { Watch } from "./watched-log.ts";

it.each([
  ["a static key", `{"msg":"Refused","key":"${newStaticKey("server").key}"}`],
  ["a token", `{"msg":"Refused","token":"${tokenFor(SPEAKER)}"}`],
  ["audio", `{"msg":"Sent","audio":"${Buffer.alloc(300, 7).toString("base64")}"}`],
  ["a client's text", '{"msg":"Speak","of":"They said: meet me at the old mill."}'],
])("finds %s in a line", (what, line) => {
  const watch = new Watch();
  watch.said("meet me at the old mill");
  watch.look("the log", '{"level":30,"audit":"admitted","session":"3f9a","key":"server","token":"t1"}');
  expect(watch.takeLeaks()).toEqual([]);
  watch.said("meet me at the old mill");
  watch.look("the log", line);
  expect(watch.takeLeaks()).toEqual([expect.stringContaining(what)]);
  expect(watch.takeLeaks()).toEqual([]);
});

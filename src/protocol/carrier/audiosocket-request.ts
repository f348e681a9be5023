/** The body of `POST /carrier/audiosocket`: what AudioSocket itself does not say of a call. */
import { z } from "zod";
import { readJson } from "../read-json.ts";

const REQUEST = z.strictObject({
  session: z.string().min(1).max(64),
  text: z.string().max(10_000).exactOptional(),
  voice_id: z.string().max(200).exactOptional(),
});
export type AudioSocketRequest = Readonly<z.infer<typeof REQUEST>>;

/** Throws malformed_json, invalid_field. */
export function readAudioSocketRequest(body: string): AudioSocketRequest {
  return readJson(body === "" ? "{}" : body, REQUEST, "Body");
}

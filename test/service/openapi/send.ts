/** Sends what was made from the document to the service, with things that are really there where it names some. */
import type { Client } from "../client.ts";
import { VOICE } from "../client.ts";
import type { GivenAnswer } from "./check.ts";
import { bodyOf, type Endpoint } from "./document.ts";
import { type DocumentRequest, FILE } from "./requests.ts";

const LEXICON = new Blob(["<lexicon/>"], { type: "application/pls+xml" });

export interface Filled extends DocumentRequest {
  readonly path: string;
}

export interface Sent {
  readonly answer: GivenAnswer;
  /** For a failure's message. */
  readonly about: string;
}

export class Sender {
  readonly #url: string;
  readonly #key: string;
  #speech = new Blob([]);

  private constructor(url: string, key: string) {
    this.#url = url;
    this.#key = key;
  }

  static async start(client: Client, key: string): Promise<Sender> {
    const sender = new Sender(client.service.url, key);
    const path = `/v1/text-to-speech/${VOICE}?output_format=wav_16000`;
    const answer = await sender.#fetch("POST", path, JSON.stringify({ text: "One two three." }));
    sender.#speech = new Blob([new Uint8Array(answer.body)], { type: "audio/wav" });
    return sender;
  }

  /** With ids of things that are made for it. `broken`: where the request is wrong, which is left alone. */
  async filled(
    endpoint: Endpoint,
    request: DocumentRequest,
    broken: readonly unknown[] = [],
  ): Promise<Filled> {
    const { path, operation } = endpoint;
    const needsItem = operation.operationId === "download_speech_history_items";
    const body =
      needsItem && broken[1] !== "history_item_ids"
        ? { ...request.body, history_item_ids: [await this.#historyItem()] }
        : request.body;
    let { query } = request;
    if (query.start_after_history_item_id !== undefined)
      query = { ...query, start_after_history_item_id: await this.#historyItem() };
    if (query.cursor !== undefined) query = { ...query, cursor: (await this.#dictionary()).id };
    return { query, body, path: await this.#pathOf(path, operation.operationId) };
  }

  async send(
    { method, ...endpoint }: Endpoint,
    { path, query, body }: Filled,
    { key = this.#key }: { readonly key?: string | null } = {},
  ): Promise<Sent> {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query))
      for (const one of [value].flat()) search.append(name, String(one));
    const type = bodyOf({ method, ...endpoint })?.type;
    const sent =
      type === undefined ? undefined : type === "application/json" ? JSON.stringify(body) : this.#form(body);
    const url = search.size === 0 ? path : `${path}?${search}`;
    const answer = await this.#fetch(method, url, sent, key);
    const shown = typeof sent === "string" ? sent : JSON.stringify(body);
    const received = answer.body.subarray(0, 300).toString();
    return { answer, about: `${method} ${url} ${shown.slice(0, 300)}: ${answer.status} ${received}` };
  }

  async #fetch(
    method: string,
    path: string,
    body: string | FormData | undefined,
    key: string | null = this.#key,
  ): Promise<GivenAnswer> {
    const answer = await fetch(this.#url + path, {
      method,
      headers: {
        ...(key === null ? {} : { "xi-api-key": key }),
        ...(typeof body === "string" ? { "content-type": "application/json" } : {}),
      },
      ...(body === undefined ? {} : { body }),
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    return { status: answer.status, headers: answer.headers, body: bytes };
  }

  #form(values: Readonly<Record<string, unknown>>): FormData {
    const form = new FormData();
    for (const [name, value] of Object.entries(values)) {
      for (const one of [value].flat()) {
        if (one === FILE && name === "file") form.append(name, LEXICON, "lexicon.pls");
        else if (one === FILE) form.append(name, this.#speech, "speech.wav");
        else if (one !== undefined) form.append(name, String(one));
      }
    }
    return form;
  }

  async #pathOf(path: string, operationId: string): Promise<string> {
    if (path.includes("{sample_id}")) {
      const id = await this.#voice();
      const { body } = await this.#fetch("GET", `/v1/voices/${id}`, undefined);
      const [sample] = (JSON.parse(body.toString()) as { samples: { sample_id: string }[] }).samples;
      return path.replace("{voice_id}", id).replace("{sample_id}", sample?.sample_id ?? "");
    }
    if (operationId === "delete_voice") return path.replace("{voice_id}", await this.#voice());
    if (path.includes("audio-isolation/history/"))
      return path.replace("{history_item_id}", await this.#isolation());
    if (path.includes("{history_item_id}"))
      return path.replace("{history_item_id}", await this.#historyItem());
    if (path.includes("{webhook_id}")) return path.replace("{webhook_id}", await this.#webhook());
    if (path.includes("{dictionary_id}")) {
      const { id, version_id: version } = await this.#dictionary();
      return path.replace("{dictionary_id}", id).replace("{version_id}", version);
    }
    return path.replace("{voice_id}", VOICE).replace("{token_type}", "tts_websocket");
  }

  async #historyItem(): Promise<string> {
    const path = `/v1/text-to-speech/${VOICE}?output_format=ulaw_8000`;
    const { headers } = await this.#fetch("POST", path, JSON.stringify({ text: "Hi." }));
    return headers.get("history-item-id") ?? "";
  }

  async #isolation(): Promise<string> {
    await this.#fetch("POST", "/v1/audio-isolation", this.#form({ audio: FILE }));
    const { body } = await this.#fetch("GET", "/v1/audio-isolation/history?page_size=1", undefined);
    return (JSON.parse(body.toString()) as { items: { id: string }[] }).items[0]?.id ?? "";
  }

  async #voice(): Promise<string> {
    const { body } = await this.#fetch(
      "POST",
      "/v1/voices/add",
      this.#form({ name: "Somebody", files: FILE }),
    );
    return (JSON.parse(body.toString()) as { voice_id: string }).voice_id;
  }

  async #dictionary(): Promise<{ readonly id: string; readonly version_id: string }> {
    const sent = JSON.stringify({ name: "Mine", rules: [] });
    const { body } = await this.#fetch("POST", "/v1/pronunciation-dictionaries/add-from-rules", sent);
    return JSON.parse(body.toString()) as { id: string; version_id: string };
  }

  async #webhook(): Promise<string> {
    const settings = { auth_type: "hmac", name: "Mine", webhook_url: "https://example.com/hook" };
    const { body } = await this.#fetch("POST", "/v1/workspace/webhooks", JSON.stringify({ settings }));
    return (JSON.parse(body.toString()) as { webhook_id: string }).webhook_id;
  }
}

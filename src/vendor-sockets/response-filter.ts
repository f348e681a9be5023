/** What is taken off a response or held back of it. */
export interface ResponseFilter {
  begin(): void;
  push(bytes: Uint8Array): Uint8Array;
  end(): Uint8Array;
}

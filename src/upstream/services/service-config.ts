/** How an upstream of another service is set. */

/** An entry of the file, checked, with its key. */
export interface ServiceConfig {
  /** What its voices begin with. */
  readonly name: string;
  /** A name of SERVICES. */
  readonly service: string;
  readonly baseUrl: string;
  readonly key: string;
  /** "": the service's own. */
  readonly model: string;
  /** Of its PCM without a header, Hz; null: not known. */
  readonly sampleRate: number | null;
  /** Empty: any. */
  readonly voices: readonly string[];
  /** null: what the service is known to take. */
  readonly maxOpen: number | null;
}

/** The files of examples/deploy/ as their programs read them, and the settings that they give. */
import { readdirSync, readFileSync } from "node:fs";
import { parse, parseAllDocuments } from "yaml";
import { SETTINGS } from "../../src/config.ts";

export const DEPLOY = new URL("../../examples/deploy/", import.meta.url);
export const pathOf = (file: string): string => new URL(file, DEPLOY).pathname;
export const textOf = (file: string): string => readFileSync(new URL(file, DEPLOY), "utf8");

/** Variables of ours that are no setting. */
const OTHERS: readonly string[] = ["VOICEWIRE_CONFIG", "VOICEWIRE_DEBUG"];

export type Environment = Readonly<Record<string, string>>;

/** Names of ours in an environment that no gateway reads. */
export function unknownSettings(environment: Environment): readonly string[] {
  const known = new Set([...SETTINGS.map(({ env }) => env), ...OTHERS]);
  return Object.keys(environment).filter((name) => name.startsWith("VOICEWIRE_") && !known.has(name));
}

/** `NAME=value` lines, as systemd's EnvironmentFile has them; `#` begins a comment. */
export function environmentOf(text: string): Environment {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf("=");
      if (at <= 0) throw new Error(`Not NAME=value: ${line}`);
      return [line.slice(0, at), line.slice(at + 1)];
    }),
  );
}

// ---- Kubernetes

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly secretKeyRef?: { readonly name: string; readonly key: string };
    readonly fieldRef?: { readonly fieldPath: string };
  };
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
  readonly periodSeconds: number;
  readonly failureThreshold?: number;
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly env?: readonly Variable[];
  readonly resources: { readonly limits: Readonly<Record<string, string>> };
  readonly readinessProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly lifecycle?: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } };
  readonly securityContext: object;
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
}

export interface PodSpec {
  readonly terminationGracePeriodSeconds?: number;
  readonly securityContext: object;
  readonly containers: readonly Container[];
  readonly volumes?: readonly {
    readonly name: string;
    readonly secret?: { readonly secretName: string };
    readonly configMap?: { readonly name: string };
  }[];
}

interface PodTemplate {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: PodSpec;
}

export interface Manifest {
  readonly file: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly spec?: Readonly<Record<string, unknown>>;
}

export interface Kustomization {
  readonly namespace: string;
  readonly resources: readonly string[];
  readonly images: readonly { readonly name: string }[];
  readonly secretGenerator: readonly { name: string; files?: string[]; envs?: string[] }[];
  readonly configMapGenerator: readonly { name: string; files: string[] }[];
}

export function kustomization(): Kustomization {
  return parse(textOf("kubernetes/kustomization.yaml")) as Kustomization;
}

/** Every object of kubernetes/, which a duplicate key or an unknown alias in a file stops. */
export function manifests(): readonly Manifest[] {
  const files = readdirSync(new URL("kubernetes/", DEPLOY)).filter(
    (name) => name.endsWith(".yaml") && name !== "kustomization.yaml",
  );
  return files.sort().flatMap((file) =>
    parseAllDocuments(textOf(`kubernetes/${file}`)).map((document) => {
      const [problem] = [...document.errors, ...document.warnings];
      if (problem !== undefined) throw problem;
      return { ...(document.toJS() as Omit<Manifest, "file">), file };
    }),
  );
}

/** Of what makes pods: a Deployment, a StatefulSet, a CronJob. */
export function podTemplateOf({ kind, spec }: Manifest): PodTemplate | undefined {
  if (kind === "CronJob") {
    const { jobTemplate } = spec as unknown as { jobTemplate: { spec: { template: PodTemplate } } };
    return jobTemplate.spec.template;
  }
  return spec !== undefined && "template" in spec ? (spec.template as PodTemplate) : undefined;
}

/** With `$(NAME)` of earlier variables put in, as the kubelet does; what comes from elsewhere is its name. */
export function environmentOfContainer({ env = [] }: Container): Environment {
  const environment: Record<string, string> = {};
  for (const { name, value } of env) {
    environment[name] =
      value === undefined
        ? name.toLowerCase()
        : value.replace(/\$\((\w+)\)/g, (whole, other: string) => environment[other] ?? whole);
  }
  return environment;
}

// ---- Compose

export interface ComposeService {
  readonly image: string;
  readonly environment?: Environment;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly secrets?: readonly string[];
  readonly stop_grace_period?: string;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly networks: readonly string[] | Readonly<Record<string, { readonly ipv4_address: string }>>;
}

export interface ComposeFile {
  readonly name: string;
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
}

/** `${NAME:-other}` and `${NAME:?why}` are what `variables` say, or `other`: in values, once the file is read. */
export function composeFile(variables: Environment = {}): ComposeFile {
  const json = JSON.stringify(parse(textOf("compose/compose.yaml"), { merge: true }));
  const filled = json.replace(
    /\$\{(\w+)(?::-([^}]*)|:\?[^}]*)\}/g,
    (_, name: string, other: string | undefined) => variables[name] ?? other ?? "",
  );
  return JSON.parse(filled) as ComposeFile;
}

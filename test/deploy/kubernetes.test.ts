/** examples/deploy/kubernetes/: what the API's schemas take, and whether the objects fit one another. */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { areInstalled, IF_INSTALLED, load } from "../clients/installed.ts";
import {
  type Container,
  DEPLOY,
  environmentOfContainer,
  kustomization,
  type Manifest,
  manifests,
  pathOf,
  podTemplateOf,
} from "./deploy-files.ts";

const ALL = manifests();
const PODS = ALL.flatMap((manifest) => {
  const template = podTemplateOf(manifest);
  return template === undefined ? [] : [{ ...template, manifest }];
});
const CONTAINERS = PODS.flatMap(({ spec }) => spec.containers);

function only(kind: string, name: string): Manifest {
  const found = ALL.filter((one) => one.kind === kind && one.metadata.name === name);
  if (found.length !== 1 || found[0] === undefined) throw new Error(`${found.length} of ${kind} ${name}`);
  return found[0];
}

/** Whether the pods' labels have all of the selector's. */
const selects = (selector: Readonly<Record<string, string>>) =>
  PODS.filter(({ metadata }) =>
    Object.entries(selector).every(([label, value]) => metadata.labels[label] === value),
  );

const GATEWAY = only("Deployment", "gateway");
const gatewayPod = podTemplateOf(GATEWAY)?.spec;
const [gateway] = gatewayPod?.containers ?? [];
if (gatewayPod === undefined || gateway === undefined) throw new Error("No gateway");

// ---- Schemas

interface Validator {
  (data: unknown): boolean;
  readonly errors?: unknown;
}

/** The part of the schema's name that the API group gives. */
const GROUPS: Readonly<Record<string, string>> = {
  "": "Core",
  apps: "Apps",
  batch: "Batch",
  policy: "Policy",
  "networking.k8s.io": "Networking",
  "rbac.authorization.k8s.io": "Rbac",
};

function validatorFor({ apiVersion, kind }: Manifest): Validator {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  const name = `IoK8sApi${GROUPS[group]}${version.replace("v", "V")}${kind}`;
  const file = new URL(`../clients/node_modules/kubernetes-models/_schemas/${name}.js`, import.meta.url);
  if (!existsSync(file)) throw new Error(`No schema of ${apiVersion} ${kind}`);
  return load<{ validate: Validator }>(file.pathname).validate;
}

/** The schemas say nothing of keys that they do not know, as of a field that is mistyped: whatever the check did not read is one. */
function unreadKeys(value: unknown, check: (value: unknown) => void): readonly string[] {
  const seen: { path: string; value: object; read: Set<string> }[] = [];
  const watched = (part: unknown, path: string): unknown => {
    if (typeof part !== "object" || part === null) return part;
    const read = new Set<string>();
    seen.push({ path, value: part, read });
    const children = new Map<string, unknown>();
    return new Proxy(part, {
      get(target, key) {
        if (typeof key !== "string") return Reflect.get(target, key);
        read.add(key);
        if (!children.has(key)) children.set(key, watched(Reflect.get(target, key), `${path}/${key}`));
        return children.get(key);
      },
    });
  };
  check(watched(value, ""));
  return seen.flatMap(({ path, value: part, read }) =>
    Object.keys(part)
      .filter((key) => !read.has(key))
      .map((key) => `${path}/${key}`),
  );
}

const isMissing = !areInstalled("kubernetes-models");

describe.skipIf(isMissing)(`schemas of Kubernetes ${isMissing ? IF_INSTALLED : ""}`, () => {
  it.each(ALL.map((one) => [`${one.kind} ${one.metadata.name}`, one] as const))(
    "%s is taken, and has no field that is unknown",
    (_, { file, ...manifest }) => {
      const validate = validatorFor({ file, ...manifest });
      const unread = unreadKeys(manifest, (value) => {
        expect(validate(value), JSON.stringify(validate.errors)).toBe(true);
      });
      expect(unread).toEqual([]);
    },
  );

  it("finds a field of a wrong type, one that is missing, and one that is mistyped", () => {
    const { file: _, ...good } = GATEWAY;
    const changed = (change: (spec: Record<string, unknown>) => void) => {
      const copy = structuredClone(good) as { spec: Record<string, unknown> };
      change(copy.spec);
      return copy;
    };
    const validate = validatorFor(GATEWAY);
    expect(validate(changed((spec) => Object.assign(spec, { replicas: "3" })))).toBe(false);
    expect(validate(changed((spec) => Object.assign(spec, { selector: undefined })))).toBe(false);
    const mistyped = changed((spec) => Object.assign(spec, { replica: 3 }));
    expect(unreadKeys(mistyped, validate)).toEqual(["/spec/replica"]);
  });
});

// ---- Whether they fit one another

describe("objects of examples/deploy/kubernetes", () => {
  it("kustomization.yaml names every file, and files that are there or are the user's own", () => {
    const { resources, secretGenerator, configMapGenerator } = kustomization();
    expect([...resources].sort()).toEqual([...new Set(ALL.map(({ file }) => file))].sort());
    const named = [...secretGenerator, ...configMapGenerator].flatMap((one) => [
      ...(one.files ?? []),
      ...("envs" in one ? (one.envs ?? []) : []),
    ]);
    const missing = named.filter((name) => !existsSync(pathOf(`kubernetes/${name}`)));
    expect(missing).toEqual(["keys.json", "nats.env"]);
  });

  it("selectors of workloads, services, budgets and policies meet the pods that they mean", () => {
    for (const { kind, metadata, spec = {} } of ALL) {
      const { selector, podSelector } = spec as {
        selector?: { matchLabels?: Record<string, string> } & Record<string, unknown>;
        podSelector?: { matchLabels: Record<string, string> };
      };
      const labels = podSelector?.matchLabels ?? selector?.matchLabels ?? selector;
      if (labels === undefined) continue;
      const met = selects(labels as Record<string, string>).map((pod) => pod.manifest.metadata.name);
      const meant = metadata.name.startsWith("nats") ? ["nats"] : ["gateway"];
      expect(met, `${kind} ${metadata.name}`).toEqual(meant);
    }
  });

  it("every pod that a policy lets in is there, and no policy opens a port that no container has", () => {
    const ports = new Set(CONTAINERS.flatMap(({ ports: all = [] }) => all.map(({ name }) => name)));
    for (const { kind, spec } of ALL.filter((one) => ["NetworkPolicy", "Service"].includes(one.kind))) {
      const text = JSON.stringify(spec);
      const names = [...text.matchAll(/"(?:targetPort|port)":"(\w+)"/g)].map(([, name]) => name ?? "");
      expect(names.filter((name) => !ports.has(name))).toEqual([]);
      if (kind !== "NetworkPolicy") continue;
      const { ingress = [] } = spec as {
        ingress?: { from?: { podSelector?: { matchLabels: Record<string, string> } }[] }[];
      };
      for (const { podSelector } of ingress.flatMap(({ from = [] }) => from))
        if (podSelector !== undefined) expect(selects(podSelector.matchLabels)).not.toEqual([]);
    }
  });

  it("volumes, secrets and config maps that pods name are there", () => {
    const { secretGenerator, configMapGenerator } = kustomization();
    const secrets = secretGenerator.map(({ name }) => name);
    const maps = configMapGenerator.map(({ name }) => name);
    for (const { spec } of PODS) {
      const volumes = spec.volumes ?? [];
      for (const { secret, configMap } of volumes) {
        if (secret !== undefined) expect(secrets).toContain(secret.secretName);
        if (configMap !== undefined) expect(maps).toContain(configMap.name);
      }
      const names = volumes.map(({ name }) => name);
      const mounted = spec.containers.flatMap(({ volumeMounts = [] }) =>
        volumeMounts.map(({ name }) => name),
      );
      expect([...new Set(mounted)].sort()).toEqual([...names].sort());
    }
    const refs = CONTAINERS.flatMap(({ env = [] }) => env).flatMap(
      ({ valueFrom }) => valueFrom?.secretKeyRef ?? [],
    );
    expect(new Set(refs.map(({ name, key }) => `${name} ${key}`))).toEqual(
      new Set(["nats-password NATS_PASSWORD"]),
    );
  });

  it("pods may not be root, gain rights or write to their image", () => {
    for (const { spec } of PODS) {
      expect(spec.securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: "RuntimeDefault" },
      });
      for (const { securityContext, resources } of spec.containers) {
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        });
        expect(Object.keys(resources.limits)).toEqual(["memory"]);
      }
    }
  });
});

describe("the gateways of examples/deploy/kubernetes", () => {
  const environment = environmentOfContainer(gateway as Container);

  it("have so long to end as they wait before, drain and close", () => {
    const waitSeconds = Number(gateway.lifecycle?.preStop.exec.command[1]);
    const drainSeconds = Number(environment.VOICEWIRE_DRAIN_MS) / 1000;
    expect(waitSeconds).toBeGreaterThan(0);
    expect(gatewayPod.terminationGracePeriodSeconds).toBeGreaterThan(waitSeconds + drainSeconds + 10);
  });

  it("are probed where nobody is asked for a key and the upstream is not looked at", () => {
    expect(gateway.readinessProbe?.httpGet).toEqual({ path: "/readyz", port: "http" });
    expect(gateway.livenessProbe?.httpGet).toEqual({ path: "/healthz", port: "http" });
  });

  it("hang for as long as the simulation assumes until they are killed", async () => {
    const { parameterTables } = await import("../../bench/kit/simulation/parameters.ts");
    const { assumed } = parameterTables(new URL("../../bench/results.json", import.meta.url));
    const { periodSeconds, failureThreshold = 0 } = gateway.livenessProbe ?? { periodSeconds: 0 };
    expect(periodSeconds * failureThreshold * 1000).toBe(assumed.livenessMs?.value);
  });

  it("know every nats-server, by the names that the StatefulSet gives", () => {
    const { spec, metadata } = only("StatefulSet", "nats");
    const names = Array.from(
      { length: Number(spec?.replicas) },
      (_, at) => `${metadata.name}-${at}.nats:4222`,
    );
    expect(environment.VOICEWIRE_CLUSTER).toBe(`nats://voicewire:nats_password@${names.join(",")}`);
    expect(only("Service", "nats").spec).toMatchObject({ clusterIP: "None", publishNotReadyAddresses: true });
    expect(spec?.serviceName).toBe("nats");
  });

  it("are replaced one by one, and never fewer than there shall be", () => {
    expect(GATEWAY.spec?.strategy).toMatchObject({ rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } });
    expect(only("PodDisruptionBudget", "gateway").spec?.maxUnavailable).toBe(1);
  });
});

// ---- Kustomize

const KUBECTL = spawnSync("kubectl", ["kustomize", "--help"], { stdio: "ignore" });
const isKubectlMissing = KUBECTL.status !== 0;

describe.skipIf(isKubectlMissing)(
  `kubectl kustomize${isKubectlMissing ? " (skipped: kubectl is not installed)" : ""}`,
  () => {
    it("makes all objects of them, in the namespace, with the image and the generated names put in", () => {
      const folder = mkdtempSync(join(tmpdir(), "voicewire-kustomize-"));
      try {
        cpSync(new URL("kubernetes/", DEPLOY), folder, { recursive: true });
        writeFileSync(join(folder, "keys.json"), '{"keys": []}');
        writeFileSync(join(folder, "nats.env"), "NATS_PASSWORD=password\n");
        const { stdout, stderr } = spawnSync("kubectl", ["kustomize", folder], { encoding: "utf8" });
        expect(stderr).toBe("");
        const made = parseAllDocuments(stdout).map((document) => document.toJS() as Manifest);
        expect(made).toHaveLength(ALL.length + 4);
        const maps = made.filter(({ kind }) => kind === "ConfigMap").map(({ metadata }) => metadata.name);
        for (const name of maps) expect(name).toMatch(/^(?:nats-config|deletion-cost)-\w{10}$/);
        for (const one of made) {
          const pod = podTemplateOf(one)?.spec;
          for (const { configMap } of pod?.volumes ?? [])
            if (configMap !== undefined) expect(maps).toContain(configMap.name);
          for (const { image } of pod?.containers ?? [])
            expect(image).toMatch(/^(?:registry\.example\.com\/voicewire:[\d.]+|nats:[\w.-]+)$/);
        }
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  },
);

it("the image has the version of package.json", () => {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  expect(kustomization().images).toEqual([
    { name: "voicewire", newName: "registry.example.com/voicewire", newTag: version },
  ]);
});

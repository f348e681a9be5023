// Tells Kubernetes how many sessions each gateway has: of a Deployment that gets smaller, those with the fewest end first.
// A CronJob runs it (deletion-cost.yaml). It reads the operations port of each gateway and writes an annotation of its pod.
import { readFileSync } from "node:fs";

const {
  KUBERNETES_API = "https://kubernetes.default.svc",
  TOKEN_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/token",
  NAMESPACE,
  OPS_PORT = "9090",
} = process.env;
const SELECTOR = "app.kubernetes.io/name=voicewire,app.kubernetes.io/component=gateway";
const ANNOTATION = "controller.kubernetes.io/pod-deletion-cost";
const TIMEOUT_MS = 5000;

const pods = `${KUBERNETES_API}/api/v1/namespaces/${NAMESPACE}/pods`;
const authorization = `Bearer ${readFileSync(TOKEN_FILE, "utf8").trim()}`;

async function ask(url, options = {}) {
  const response = await fetch(url, { ...options, signal: AbortSignal.timeout(TIMEOUT_MS) });
  // A gateway that drains answers 503, with its sessions.
  if (!response.ok && response.status !== 503)
    throw new Error(`${new URL(url).pathname}: ${response.status}`);
  return response.json();
}

const { items } = await ask(`${pods}?labelSelector=${encodeURIComponent(SELECTOR)}`, {
  headers: { authorization },
});
for (const { metadata, status } of items) {
  if (status.podIP === undefined || metadata.deletionTimestamp !== undefined) continue;
  const host = status.podIP.includes(":") ? `[${status.podIP}]` : status.podIP;
  try {
    const { sessions } = await ask(`http://${host}:${OPS_PORT}/readyz`);
    const cost = String(sessions);
    if (metadata.annotations?.[ANNOTATION] === cost) continue;
    await ask(`${pods}/${metadata.name}`, {
      method: "PATCH",
      headers: { authorization, "content-type": "application/merge-patch+json" },
      body: JSON.stringify({ metadata: { annotations: { [ANNOTATION]: cost } } }),
    });
  } catch (error) {
    // One that can't be asked keeps what it has; the next run tries again.
    console.error(`${metadata.name}: ${error.message}`);
  }
}

/**
 * Fills a platform with deployments of the no-op service that are scaled to zero, each with an
 * artifact of its own: one is deployed as people do, and the others are stored like it. Arguments:
 * the database, the data folder, and how many. Prints a token that may call them.
 */
import { fileURLToPath } from "node:url";
import { openStorageBesideNodes } from "../src/app/adapters.ts";
import { startPlatform } from "../src/app/start.ts";
import { buildArtifact } from "../src/artifacts/build.ts";
import { type ArtifactIndex, digestOf, writeIndex } from "../src/artifacts/index-file.ts";
import { openFile } from "../src/artifacts/pack.ts";
import { createTesseraClient, DeploymentStatus } from "../src/client/index.ts";
import { readStartConfig } from "../src/config/start.ts";
import { Manifests } from "../src/hosting/manifests.ts";

const [database = "", data = "", count = "1000"] = process.argv.slice(2);
const { config, secrets } = readStartConfig(
  { port: "0", data, logLevel: "warn" },
  { DATABASE_URL: database },
);
const platform = await startPlatform(config, secrets);
const url = `http://127.0.0.1:${platform.port}`;
const signedIn = await post("auth:setUp", {
  setup_code: platform.setupCode,
  organization: "acme",
  email: "ada@example.com",
  password: "a long enough password",
});
const cookie = signedIn.headers.getSetCookie().map((each) => each.split(";", 1)[0]);
const made = await post(
  "tokens",
  {
    name: "bench",
    access: ["developer_operations", "protected_endpoint"],
    all_deployments: true,
    expires_at: new Date(Date.now() + 86_400_000).toISOString(),
  },
  { cookie: cookie.join("; ") },
);
const token = ((await made.json()) as { value: string }).value;
const client = createTesseraClient({ url, token });
const built = await buildArtifact(fileURLToPath(new URL("noop.ts", import.meta.url)));
for (const file of built.index.files) {
  const { sha256, size } = file;
  await client.deployments.uploadFile(
    (async function* () {
      const header = { sha256, sizeBytes: BigInt(size) };
      yield { part: { case: "header" as const, value: header } };
      for await (const chunk of openFile(built, file)) {
        yield { part: { case: "chunk" as const, value: chunk as Uint8Array<ArrayBuffer> } };
      }
    })(),
  );
}
await client.deployments.createRevision({
  deployment: "sleeping-0",
  index: Buffer.from(writeIndex(built.index)),
  settings: { minWorkers: 0, maxWorkers: 1 },
});
for (;;) {
  const { status } = await client.deployments.getDeployment({ deployment: "sleeping-0" });
  if (status === DeploymentStatus.READY) {
    break;
  }
  await new Promise((resolve) => setTimeout(resolve, 100));
}
await platform.stop();
await using storage = openStorageBesideNodes(
  { database, directDatabase: undefined },
  { migration: "auto" },
);
await storage.start();
const { hosting } = storage;
const { items } = await hosting.listHosted({ limit: 1 });
const first = items[0];
if (first === undefined) {
  throw new Error("there is no deployment");
}
/** Their indexes, by name. */
const described = new Map<string, string>();
for (let number = 1; number < Number(count); number++) {
  const name = `sleeping-${number}`;
  const index = writeIndex({
    ...built.index,
    service: { ...built.index.service, description: name } as never,
  });
  const digest = digestOf(index);
  const { outcome } = await hosting.createRevision({
    by: { name: "bench", id: "", address: "" },
    nowMs: Date.now(),
    eventId: crypto.randomUUID(),
    organizationId: first.organizationId,
    name,
    deploymentId: crypto.randomUUID(),
    artifact: {
      digest,
      index,
      endpoints: built.index.service.endpoints.map(({ name, kind }) => ({ name, kind })),
      files: built.index.files.map(({ sha256, size }) => ({ sha256, sizeBytes: size })),
    },
    settings: { minWorkers: 0, maxWorkers: 1 },
    limit: 1_000_000,
    maxSecrets: 10,
    keptRevisions: 10,
  });
  if (outcome !== "created") {
    throw new Error(`${name}: ${outcome}`);
  }
  described.set(name, index);
}
// As a node does when a worker of each has told its manifest.
const manifests = new Manifests({
  hosting,
  log: { debug() {}, info() {}, warn: console.warn, error: console.error },
});
for (let after: string | undefined, more = true; more; more = after !== undefined) {
  const page = await hosting.listHosted({ limit: 100, ...(after !== undefined && { after }) });
  for (const record of page.items) {
    const text = described.get(record.name);
    const index = text === undefined ? built.index : (JSON.parse(text) as ArtifactIndex);
    await manifests.note(record, index, { manifest: index.service, wasOther: false });
  }
  after = page.next;
}
process.stdout.write(`token ${token}\n`);
process.exit(0);

async function post(path: string, body: object, headers = {}): Promise<Response> {
  const answer = await fetch(`${url}/api/v1/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  if (!answer.ok) {
    throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  }
  return answer;
}

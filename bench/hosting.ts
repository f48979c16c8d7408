/**
 * A platform node for benchmarks: with as many deployments of the no-op service
 * as the third argument says, on the database and the data folder of the first
 * two. With `remote` as the fourth one, workers that join run the first
 * deployment; a number there is how many workers each deployment has, on all nodes of the database.
 * A further node of a database joins the first. Prints its port, and a token with which workers join.
 * `TESSERA_CELLS` is as of a node.
 */
import { fileURLToPath } from "node:url";
import { startPlatform } from "../src/app/start.ts";
import { buildArtifact } from "../src/artifacts/build.ts";
import { writeIndex } from "../src/artifacts/index-file.ts";
import { openFile } from "../src/artifacts/pack.ts";
import { createTesseraClient, DeploymentStatus, WorkerPlace } from "../src/client/index.ts";
import { readStartConfig } from "../src/config/start.ts";

const [database = "", data = "", deployments = "1", place] = process.argv.slice(2);
const { config, secrets } = readStartConfig(
  { port: "0", data, logLevel: "warn" },
  { DATABASE_URL: database, TESSERA_CELLS: process.env.TESSERA_CELLS },
);
const platform = await startPlatform(config, secrets);
process.once("SIGTERM", () => void platform.stop().then(() => process.exit()));
const url = `http://127.0.0.1:${platform.port}`;
const workers = Number(place) || 1;

if (platform.setupCode === undefined) {
  process.stdout.write(`port ${platform.port} joins, ready\n`);
  await new Promise<never>(() => {});
}
const signedIn = await post("auth:setUp", {
  setup_code: platform.setupCode,
  organization: "acme",
  email: "ada@example.com",
  password: "a long enough password",
});
const cookie = signedIn.headers.getSetCookie().map((each) => each.split(";", 1)[0]);
const expires_at = new Date(Date.now() + 3_600_000).toISOString();
const client = createTesseraClient({
  url,
  token: await token({ name: "bench", access: ["developer_operations"] }),
});

const artifact = await buildArtifact(fileURLToPath(new URL("noop.ts", import.meta.url)));
for (const file of artifact.index.files) {
  const { sha256, size } = file;
  await client.deployments.uploadFile(
    (async function* () {
      const header = { sha256, sizeBytes: BigInt(size) };
      yield { part: { case: "header" as const, value: header } };
      for await (const chunk of openFile(artifact, file)) {
        yield { part: { case: "chunk" as const, value: chunk as Uint8Array<ArrayBuffer> } };
      }
    })(),
  );
}
const index = Buffer.from(writeIndex(artifact.index));
for (let number = 1; number <= Number(deployments); number++) {
  const name = `noop-${number}`;
  const remote = place === "remote" && number === 1;
  await client.deployments.createRevision({
    deployment: name,
    index,
    settings: {
      ...{ minWorkers: workers, maxWorkers: workers },
      ...(remote && { place: WorkerPlace.REMOTE }),
    },
  });
  for (;;) {
    const { status } = await client.deployments.getDeployment({ deployment: name });
    if (status === (remote ? DeploymentStatus.DEGRADED : DeploymentStatus.READY)) {
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
const join = await token({ name: "join", access: ["worker"], deployments: ["noop-1"] });
process.stdout.write(`port ${platform.port} token ${join} ready\n`);

async function token(fields: object): Promise<string> {
  const made = await post("tokens", { ...fields, expires_at }, { cookie: cookie.join("; ") });
  return ((await made.json()) as { value: string }).value;
}

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

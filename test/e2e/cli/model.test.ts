import { createHash, randomBytes } from "node:crypto";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { MAX_PART_BYTES } from "../../../src/artifacts/parts.ts";
import { createTesseraClient, errorFacts, ModelState } from "../../../src/client/index.ts";
import { FakeHub } from "../../hosting/models/hub.ts";
import { call } from "../hosting/world.ts";
import { memberToken } from "../start/member.ts";
import { cookieOf, Folder, start } from "../start/platform.ts";
import { Person } from "./person.ts";
import { json, type Scene, scene } from "./platform-person.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const WEIGHTS = randomBytes(200_000);

let hub: FakeHub;
let at: Scene;
let folder: string;
beforeAll(async () => {
  hub = await FakeHub.start({ "config.json": "{}", "pytorch_model.bin": WEIGHTS });
  at = await scene({ env: { TESSERA_MODEL_HUB: hub.url } });
  folder = mkdtempSync(join(tmpdir(), "tessera-models-"));
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await hub[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const run = (...args: readonly string[]) => at.ada.run(["model", ...args]);

/** Makes a folder of files; returns its path. */
function made(name: string, files: Readonly<Record<string, string | Buffer>>): string {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  for (const [file, content] of Object.entries(files)) {
    writeFileSync(join(path, file), content);
  }
  return path;
}

it("pushes a folder, shows it, pulls it again, and deletes it", async () => {
  const path = made("Reader", { "config.json": "{}", weights: WEIGHTS });
  const pushed = await run("push", path, "--json");
  expect(pushed).toMatchObject({ code: 0 });
  expect(json(pushed)).toMatchObject({
    ...{ model: "reader", version: 1, state: "ready", size_bytes: "200002", file_count: 2 },
  });
  expect(json(await run("push", path, "--json"))).toMatchObject({ version: 1 });
  writeFileSync(join(path, "config.json"), '{"new":true}');
  const second = await run("push", path, "--name", "reader");
  expect(second.stdout).toMatch(/^model +reader@2\nstate +ready\n/);
  expect(second.stderr).toContain("uploaded 1 of 2 files and parts, 12 B");
  expect((await run("list")).stdout).toMatch(/^NAME +VERSION .*\nreader +2 +ready/);
  expect((await run("get", "reader")).stdout).toMatch(/\n2 +ready .*\n1 +ready /);
  const pulled = join(folder, "pulled");
  expect(await run("pull", "reader@1", pulled)).toMatchObject({ code: 0 });
  expect(readdirSync(pulled).sort()).toEqual(["config.json", "weights"]);
  expect(readFileSync(join(pulled, "weights")).equals(WEIGHTS)).toBe(true);
  expect(readFileSync(join(pulled, "config.json"), "utf8")).toBe("{}");
  expect(await run("pull", "reader", pulled)).toMatchObject({ code: 2 });
  expect(await run("delete", "reader@2", "--yes")).toMatchObject({ code: 0 });
  expect(await run("pull", "reader@2", join(folder, "gone"))).toMatchObject({ code: 1 });
  expect(await run("delete", "reader", "--yes")).toMatchObject({ code: 0 });
  expect(await run("get", "reader")).toMatchObject({ code: 4 });
});

it("goes on with an upload that stopped before its last file", async () => {
  const files = Object.fromEntries(Array.from({ length: 5 }, (_, n) => [`${n}`, `file ${n}`]));
  const path = made("stopped", files);
  const { value: token } = await at.platform.createToken(at.adaCookie);
  const { deployments } = createTesseraClient({ url: at.platform.url, token });
  for (const text of Object.values(files).slice(0, -1)) {
    const sha256 = createHash("sha256").update(text).digest("hex");
    const header = { sha256, sizeBytes: BigInt(text.length) };
    const { keptUntil } = await deployments.uploadFile(
      (async function* () {
        yield { part: { case: "header" as const, value: header } };
        yield { part: { case: "chunk" as const, value: Buffer.from(text) } };
      })(),
    );
    // So that it goes on a day later, too.
    expect(Number(keptUntil?.seconds)).toBeGreaterThan(Date.now() / 1_000 + 35 * 3_600);
  }
  const pushed = await run("push", path);
  expect(pushed).toMatchObject({ code: 0 });
  expect(pushed.stderr).toContain("uploaded 1 of 5 files and parts, 6 B");
});

it("refuses weights that change between two parts of their upload, and then sends those alone", async () => {
  const weights = Buffer.alloc(MAX_PART_BYTES + 1);
  const path = made("changing", { weights });
  at.ada.onStderr = (text) => {
    // The list of what is to be sent is made: one byte changes, at the end.
    if (text.includes("uploading")) {
      at.ada.onStderr = () => {};
      weights.fill(1, MAX_PART_BYTES);
      writeFileSync(join(path, "weights"), weights);
    }
  };
  const refused = await at.ada.run(["model", "push", path], { answers: [] });
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toMatch(/weights.*is not what the index says: it was changed or damaged/);
  const { stderr } = await run("push", path);
  expect(stderr).toMatch(/uploaded [12] of 2 files and parts/);
  const pulled = join(folder, "changed");
  expect(await run("pull", "changing", pulled)).toMatchObject({ code: 0 });
  expect(readFileSync(join(pulled, "weights")).equals(weights)).toBe(true);
}, 60_000);

it("has one version of what two push at once", async () => {
  const files = Object.fromEntries(
    Array.from({ length: 20 }, (_, n) => [`${n}`, randomBytes(100_000)]),
  );
  const path = made("twice", files);
  using grace = new Person();
  const { value } = await at.platform.createToken(at.adaCookie);
  await at.logIn(grace, value);
  const both = await Promise.all([
    run("push", path, "--json"),
    grace.run(["model", "push", path, "--json"]),
  ]);
  expect(both.map(json)).toEqual([
    expect.objectContaining({ model: "twice", version: 1, state: "ready" }),
    expect.objectContaining({ model: "twice", version: 1, state: "ready" }),
  ]);
  const pulled = join(folder, "of-both");
  expect(await run("pull", "twice", pulled)).toMatchObject({ code: 0 });
  expect(readFileSync(join(pulled, "19")).equals(files["19"] ?? Buffer.alloc(0))).toBe(true);
});

it("ends in the middle of a push where the organization has no more room, and goes on when it has", async () => {
  using ada = new Person();
  using data = new Folder();
  const files = Object.fromEntries(
    Array.from({ length: 12 }, (_, n) => [`${n}`, randomBytes(150 * 1024)]),
  );
  const path = made("roomy", files);
  const push = async (room: string) => {
    const env = { TESSERA_MAX_ORGANIZATION_STORAGE: room };
    await using platform = await start(data, { env });
    const cookie =
      platform.setupCode === ""
        ? cookieOf(await platform.signIn("ada@example.com"))
        : await platform.setUp("ada@example.com");
    const { value: input } = await platform.createToken(cookie, { name: room });
    const login = ["cloud", "login", "--endpoint", platform.url, "--api-token", "-"];
    await ada.run(login, { input });
    return await ada.run(["model", "push", path]);
  };
  const refused = await push("1MiB");
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toContain("--max-organization-storage");
  // What was broken off counts until it is swept, within a minute.
  const pushed = await push("4MiB");
  expect(pushed).toMatchObject({ code: 0 });
  expect(pushed.stderr).toMatch(/uploaded (?:\d|1[01]) of 12 files and parts/);
}, 60_000);

it("refuses a folder with links, and a name that is none", async () => {
  const path = made("linked", { weights: "1" });
  symlinkSync("/etc/passwd", join(path, "passwd"));
  const linked = await run("push", path);
  expect(linked).toMatchObject({ code: 1, stdout: "" });
  expect(linked.stderr).toContain("such as a link");
  expect(await run("push", path, "--name", "../x")).toMatchObject({ code: 2 });
});

it("imports a model with its warnings, and the same again at once", async () => {
  const imported = await run("import", "hf://acme/reader", "--name", "imported");
  expect(imported.stderr).not.toContain("Error");
  expect(imported).toMatchObject({ code: 0 });
  expect(imported.stdout).toMatch(
    /\nsource +hf:\/\/acme\/reader\ncommit +[0-9a-f]{40} of acme\/reader\n/,
  );
  expect(imported.stdout).toMatch(/\nwarning +pytorch_model\.bin may hold pickled objects/);
  const again = await run("import", "hf://acme/reader", "--name", "imported", "--json");
  expect(json(again)).toMatchObject({ version: 1, state: "ready" });
});

it("a deploy opens a gated repository by a secret of the deployment, which nobody is shown", async () => {
  const secret = "hf_of_the_deployment";
  hub.faults.token = secret;
  const path = made("gated", {
    "service.ts": `import { api, service } from "tessera-platform";
      export default service({ name: "gated", models: { reader: "hf://acme/reader" }, endpoints: { go: api({}, () => 1) } });`,
    "tessera.yaml": "service: service.ts\nmodels: { reader: { token: HF_TOKEN } }\n",
    token: secret,
  });
  symlinkSync(join(ROOT, "node_modules"), join(path, "node_modules"));
  const deploy = (...args: readonly string[]) => at.ada.run(["deploy", path, "--no-wait", ...args]);
  const without = await deploy();
  expect(without).toMatchObject({ code: 2 });
  expect(without.stderr).toContain("the service needs the secret HF_TOKEN");
  const deployed = await deploy("--secret", `HF_TOKEN=@${join(path, "token")}`);
  expect(deployed).toMatchObject({ code: 0 });
  expect(deployed.stderr).toContain(
    "warning: model reader: pytorch_model.bin may hold pickled objects, which run code",
  );
  // Another commit, and nobody gives the token again.
  hub.commit({ "config.json": '{"second":true}' });
  expect(await deploy()).toMatchObject({ code: 0 });
  const { value: token } = await at.platform.createToken(at.adaCookie);
  const { models, organizations } = createTesseraClient({ url: at.platform.url, token });
  const { versions } = await models.getModel({ model: "reader" });
  expect(versions[0]).toMatchObject({ state: ModelState.READY, fileCount: 1 });
  const { auditEvents: events } = await organizations.listAuditEvents({ pageSize: 20 });
  const noted = events.filter(({ action }) => action === "model.import");
  expect(noted[0]?.details).toMatchObject({ token_secret: "gated/HF_TOKEN" });
  expect(JSON.stringify(events.map(({ details }) => details))).not.toContain(secret);
  const asked = { source: "hf://acme/reader" };
  const developer = await memberToken(at.platform, at.adaCookie, "grace@example.com");
  const member = createTesseraClient({ url: at.platform.url, token: developer });
  const refusal = (by: typeof member, deployment: string, name: string) =>
    by.models.importModel({ ...asked, tokenSecret: { deployment, name } }).catch(errorFacts);
  expect(await refusal(member, "gated", "HF_TOKEN")).toMatchObject({ reason: "ACCESS_DENIED" });
  const by = createTesseraClient({ url: at.platform.url, token });
  expect(await refusal(by, "gated", "OTHER")).toMatchObject({ reason: "REQUEST_INVALID" });
  expect(await refusal(by, "none", "HF_TOKEN")).toMatchObject({ reason: "DEPLOYMENT_NOT_FOUND" });
  delete hub.faults.token;
});

it("a deploy pins revisions of a repository, and what is in BentoML's store, by the names that the code has", async () => {
  hub.tag("v1.0", hub.commit({ "config.json": '{"of":"v1.0"}' }));
  hub.commit({ "config.json": '{"of":"main"}' });
  const store = made("home/models/reader..b/v3", { "config.json": '{"of":"store"}' });
  writeFileSync(join(store, "../latest"), "v3");
  const path = made("named", {
    "service.ts": `import { readFileSync } from "node:fs";
      import { api, service } from "tessera-platform";
      const { env } = process;
      const read = (folder: string) => JSON.parse(readFileSync(folder + "/config.json", "utf8")).of;
      const hub = () => env.HF_HUB_CACHE + "/models--acme--reader";
      const models = { old: "hf://acme/reader@v1.0", now: "hf://acme/reader", saved: "bentoml://reader..b" };
      export default service({ name: "named", models, endpoints: {
        hub: api({}, () => ["v1.0", "main"].map((ref) =>
          read(hub() + "/snapshots/" + readFileSync(hub() + "/refs/" + ref, "utf8")))),
        store: api({}, () => {
          const folder = env.BENTOML_HOME + "/models/reader..b";
          const latest = readFileSync(folder + "/latest", "utf8");
          return [latest, read(folder + "/" + latest)];
        }),
      } });`,
  });
  symlinkSync(join(ROOT, "node_modules"), join(path, "node_modules"));
  const env = { BENTOML_HOME: join(folder, "home") };
  const deploy = (...args: readonly string[]) =>
    at.ada.run(["deploy", join(path, "service.ts"), ...args], { env });
  const { stderr } = await deploy();
  expect(stderr).toContain("Deployed revision 1 of named");
  expect(await call(at.platform, "named", "/hub", { body: {} })).toMatchObject({
    json: ["v1.0", "main"],
  });
  const stored = await call(at.platform, "named", "/store", { body: {} });
  expect(stored).toMatchObject({ json: ["v3", "store"] });
  expect((await run("get", "reader.b")).stdout).toMatch(/\n1 +ready .* named/);
  // Pushed already, and nothing of it is here any more.
  rmSync(join(folder, "home"), { recursive: true });
  const missing = await deploy();
  expect(missing).toMatchObject({ code: 1, stdout: "" });
  expect(missing.stderr).toMatch(/model saved: BentoML has no model reader\.\.b here/);
  const yaml = "service: service.ts\nmodels: { saved: model://reader.b@1 }\n";
  writeFileSync(join(path, "tessera.yaml"), yaml);
  expect((await at.ada.run(["deploy", path], { env })).stderr).toContain("Deployed revision 2");
  expect(await call(at.platform, "named", "/store", { body: {} })).toMatchObject({
    json: ["1", "store"],
  });
});

it("says what a source refuses, and takes a token from a file", async () => {
  hub.faults.token = "hf_secret";
  const refused = await run("import", "hf://acme/reader", "--name", "gated");
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toContain("is gated, private or not there");
  const file = join(folder, "token");
  writeFileSync(file, "hf_secret\n");
  const args = ["import", "hf://acme/reader", "--name", "gated", "--token-file", file];
  expect(await run(...args)).toMatchObject({ code: 0 });
  expect(await run("import", "ftp://x")).toMatchObject({ code: 2 });
  const other = ["model", "import", "hf://acme/reader", "--name"];
  const piped = [...other, "piped", "--token-file", "-"];
  expect(await at.ada.run(piped, { input: "hf_secret\n" })).toMatchObject({ code: 0 });
  const wrong = { input: "hf_secret", env: { HF_TOKEN: "hf_wrong" } };
  expect(await at.ada.run([...other, "piped", "--token-file", "-"], wrong)).toMatchObject({
    code: 0,
  });
  const inherited = { env: { HF_TOKEN: "hf_secret" } };
  expect(await at.ada.run([...other, "inherited"], inherited)).toMatchObject({ code: 0 });
  delete hub.faults.token;
});

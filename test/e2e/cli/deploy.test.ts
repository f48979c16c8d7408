import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  DeploymentSettingsSchema,
  DeploymentStatus,
} from "../../../gen/tessera/v1/deployment_pb.js";
import { notOpenable } from "../../../src/api/deployment/refusals.ts";
import { problem } from "../../../src/errors.ts";
import { Receiver } from "./deploying.ts";

const DIGITS = fileURLToPath(new URL("../../../examples/digits/service.ts", import.meta.url));
const SUMMARIZER = fileURLToPath(
  new URL("../../../examples/summarizer/service.ts", import.meta.url),
);
const BUILD_MS = 30_000;

let to: Receiver;
let folder: string;
beforeEach(async () => {
  to = await Receiver.start();
  folder = mkdtempSync(join(tmpdir(), "tessera-test-deploy-"));
});
afterEach(async () => {
  await to[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** Writes a file in the test's folder. */
function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

describe("tessera deploy", { timeout: BUILD_MS }, () => {
  it("says what becomes of the workers that the service asks for", async () => {
    const endpoint = {
      ...{ name: "go", kind: "api", input: { type: "object", properties: {} }, output: {} },
      ...{ files: {}, retries: { max: 0, backoffMs: 0 }, timeoutMs: 1_000, concurrency: 1 },
      ...{ retentionMs: 1_000, queueLimit: 1, priority: 0 },
    };
    const manifest = { name: "asking", endpoints: [endpoint], workers: 3 };
    const path = file("asking.json", JSON.stringify(manifest));
    const deployed = async (maxWorkers: number): Promise<string> => {
      const settings = create(DeploymentSettingsSchema, { minWorkers: 1, maxWorkers });
      const revision = to.revisions.length + 1;
      to.states = [{ status: DeploymentStatus.READY, revision, settings }];
      const { code, stderr } = await to.run(["deploy", path]);
      expect({ code, stderr }).toEqual({ code: 0, stderr });
      return stderr;
    };
    expect(await deployed(3)).toContain("At most 3 workers run it, as the service says\n");
    expect(await deployed(1)).toContain(
      "At most 1 worker runs it, and the service says 3: tessera deployment update asking --workers 1..3\n",
    );
  });

  it("uploads what is missing, waits, and shows where it is called and how", async () => {
    to.states = [
      { status: DeploymentStatus.STARTING, statusReason: "0 of 1 workers are ready" },
      { status: DeploymentStatus.READY, revision: 1 },
    ];
    const { code, stdout, stderr } = await to.run(["deploy", DIGITS]);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toBe(
      "http://digits.acme.apps.localhost:3000\n\n  curl http://digits.acme.apps.localhost:3000/classify -F image=@file.png\n\n",
    );
    expect(stderr).toMatch(/^compiling …\nlooking for .* …\nloading it in a worker …\n/);
    expect(stderr).toMatch(/\nuploaded 3 of 3 files, [\d.]+ KiB\nrevision 1: starting, 0 of 1 w/);
    expect(stderr).toMatch(/\nDeployed revision 1 of digits, artifact [0-9a-f]{12}\nAnyone /);
    expect(to.files.size).toBe(3);
    const [revision] = to.revisions;
    expect(JSON.parse(Buffer.from(revision?.index ?? []).toString())).toMatchObject({
      name: "digits",
    });
    expect(revision?.settings).toMatchObject({ env: {} });
    expect(revision?.settings?.minWorkers).toBeUndefined();
    expect(revision?.authorization).toBeUndefined();

    to.states = [{ status: DeploymentStatus.READY, revision: 2 }];
    const again = await to.run(["deploy", DIGITS, "--authorization", "-o", "json"]);
    expect(again.code).toBe(0);
    expect(JSON.parse(again.stdout)).toMatchObject({ name: "digits", status: "ready" });
    expect(again.stderr).toBe("");
    expect(to.uploads).toHaveLength(3);
    expect(to.revisions[1]?.authorization).toBe(true);
  });

  it("shows the header that a protected deployment asks for", async () => {
    to.states = [{ status: DeploymentStatus.READY, revision: 1, authorization: true }];
    const { stdout, stderr } = await to.run(["deploy", SUMMARIZER, "--name", "sums"]);
    expect(stdout).toContain(
      'curl http://sums.acme.apps.localhost:3000/summarize -H "Authorization: Bearer $TESSERA_TOKEN" -H "content-type: application/json" -d ',
    );
    expect(stderr).toContain("tessera token create caller --deployment sums");
  });

  it("takes an artifact, whatever it is called, and refuses a damaged one", async () => {
    const artifact = join(folder, "some.file");
    expect(await to.run(["build", DIGITS, "--output", artifact])).toMatchObject({ code: 0 });
    expect(await to.run(["deploy", artifact, "--no-wait"])).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/The roll-out of revision 1 goes on: tessera deployment get/),
    });
    expect(to.files.size).toBe(3);
    const damaged = file("damaged.tessera", "no gzip");
    expect(await to.run(["deploy", damaged])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("the artifact is damaged, or was not made by tessera build"),
    });
    expect(to.revisions).toHaveLength(1);
  });

  it("reads tessera.yaml beside a service that is named, where it is for that one", async () => {
    const deployed = async (yaml: string) => {
      file("tessera.yaml", yaml);
      const { code, stderr } = await to.run(["deploy", source]);
      expect({ code, stderr }).toEqual({ code: 0, stderr });
      return stderr;
    };
    const source = file(
      "service.mjs",
      'import { service, api } from "tessera-platform";\nexport default service({ name: "tiny", endpoints: { hello: api({}, () => 1) } });\n',
    );
    expect(await deployed("service: service.mjs\nname: small\nmemory: 256Mi\n")).not.toContain(
      "is not read",
    );
    expect(to.revisions[0]).toMatchObject({ deployment: "small", settings: { memoryMib: 256 } });
    to.states = [{ status: DeploymentStatus.READY, revision: 2 }];
    expect(await deployed("service: other.mjs\nname: other\n")).toContain(
      "is for another service, and is not read",
    );
    expect(to.revisions[1]?.deployment).not.toBe("other");
  });

  it("does what tessera.yaml says, unless flags say otherwise", async () => {
    file(
      "service.js",
      'import { service, api } from "tessera-platform";\nexport default service({ name: "small", endpoints: { hello: api({}, () => process.env.WORD) } });\n',
    );
    file(
      "tessera.yaml",
      [
        "service: service.js",
        "name: from-file",
        "authorization: true",
        "workers: { min: 0, max: 3 }",
        "memory: 1Gi",
        "cpu: 0.5",
        "env:",
        "  WORD: hello",
        "  COUNT: 010",
        "secrets: [API_KEY, OLD_KEY]",
      ].join("\n"),
    );
    to.secretNames = ["OLD_KEY"];
    const secret = file("key", "hunter2\n");
    const missing = await to.run(["deploy", folder]);
    expect(missing).toMatchObject({ code: 2, stdout: "" });
    expect(missing.stderr).toContain("the service needs the secret API_KEY");
    const args = ["deploy", folder, "--cpu", "2", "--secret", `API_KEY=@${secret}`];
    const { code, stderr } = await to.run(args);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stderr).not.toContain("hunter2");
    expect(to.revisions).toMatchObject([
      {
        deployment: "from-file",
        authorization: true,
        settings: {
          minWorkers: 0,
          maxWorkers: 3,
          memoryMib: 1024,
          cpu: 2,
          env: { WORD: "hello", COUNT: "010" },
        },
        secrets: { API_KEY: "hunter2" },
      },
    ]);
  });

  it("asks for secrets at a terminal, and reads one from standard input elsewhere", async () => {
    const args = ["deploy", SUMMARIZER, "--secret", "ONE"];
    const asked = await to.run([...args, "--secret", "TWO"], {
      answers: [
        ["Secret ONE", "first\r"],
        ["Secret TWO", "second\r"],
      ],
    });
    expect(asked.code).toBe(0);
    expect(asked.stderr).not.toContain("first");
    expect(asked.stderr).toMatch(/uploading █*░* +100 % {2}\d+ of \d+ files/);
    to.states = [{ status: DeploymentStatus.READY, revision: 2 }];
    expect(await to.run(args, { input: "third\nline\n" })).toMatchObject({ code: 0 });
    expect(to.revisions.map(({ secrets }) => secrets)).toEqual([
      { ONE: "first", TWO: "second" },
      { ONE: "third\nline" },
    ]);
    const both = await to.run([...args, "--secret", "TWO"], { input: "x" });
    expect(both).toMatchObject({ code: 2 });
  });

  it("says why a revision cannot start, with what its workers wrote last", async () => {
    to.states = [
      { status: DeploymentStatus.STARTING },
      { status: DeploymentStatus.FAILED, statusReason: "the service did not load", revision: 0 },
    ];
    to.logs = async function* () {
      yield { revision: 1, stream: "node", text: "of a node" };
      yield { revision: 1, stream: "stderr", text: "Error: no model" };
    };
    const { code, stdout, stderr } = await to.run(["deploy", SUMMARIZER]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(
      "tessera: summarizer could not be rolled out: the service did not load\n  Error: no model\nnothing serves now; tessera deployment logs summarizer",
    );
    expect(stderr).not.toContain("of a node");
    expect(to.logRequests).toMatchObject([
      { deployment: "summarizer", revision: 1, follow: false },
    ]);
  });

  it("says whose revision came in between, and that a stopped deployment stays so", async () => {
    to.states = [{ status: DeploymentStatus.STARTING, targetRevision: 7 }];
    const overtaken = await to.run(["deploy", SUMMARIZER]);
    expect(overtaken.code).toBe(1);
    expect(overtaken.stderr).toContain("revision 7 has taken the place of revision 1");
    to.states = [{ status: DeploymentStatus.STOPPED }];
    const stopped = await to.run(["deploy", SUMMARIZER]);
    expect(stopped.code).toBe(0);
    expect(stopped.stderr).toContain("tessera deployment start summarizer");
  });

  it("goes on waiting while the platform is out of reach for a moment", async () => {
    to.states = [
      problem("SHUTTING_DOWN", "the server is shutting down"),
      new ConnectError("connect ECONNREFUSED", Code.Unavailable),
      { status: DeploymentStatus.READY, revision: 1 },
    ];
    expect(await to.run(["deploy", SUMMARIZER])).toMatchObject({ code: 0 });
    to.states = [problem("TOKEN_INVALID", "the token is not valid")];
    expect(await to.run(["deploy", SUMMARIZER])).toMatchObject({ code: 3, stdout: "" });
  });

  it("takes a revision that stays degraded, and gives up on one that stays starting", async () => {
    const start = Date.now();
    to.person.now = () => start + to.person.waitsMs.reduce((sum, ms) => sum + ms, 0);
    const statusReason = "1 of 2 workers is ready";
    to.states = [{ status: DeploymentStatus.DEGRADED, revision: 1, workers: 1, statusReason }];
    const degraded = await to.run(["deploy", SUMMARIZER]);
    expect(degraded).toMatchObject({ code: 0, stdout: expect.stringMatching(/^http:/) });
    expect(degraded.stderr).toContain("warning: it serves, but is degraded: 1 of 2 workers is");
    to.states = [{ status: DeploymentStatus.STARTING, statusReason: "loading" }];
    const stuck = await to.run(["deploy", SUMMARIZER]);
    expect(stuck).toMatchObject({ code: 1, stdout: "" });
    expect(stuck.stderr).toContain("revision 2 is not ready after 15 minutes: loading\n");
  });

  it("begins a file again when the server was away, and ends when it refuses", async () => {
    to.onUpload = (count) => {
      if (count === 1) {
        throw problem("STORAGE_UNAVAILABLE", "the database is away");
      }
    };
    expect(await to.run(["deploy", DIGITS])).toMatchObject({ code: 0 });
    expect(to.uploads).toHaveLength(4);
    expect(to.files.size).toBe(3);
    to.files.clear();
    to.onUpload = () => {
      throw problem("ARTIFACT_INVALID", "this is too large");
    };
    const refused = await to.run(["deploy", DIGITS]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain("tessera: this is too large\n");
    expect(to.revisions).toHaveLength(1);
  });

  it("names the password only where the token may not switch authorization off", async () => {
    const deploy = ["deploy", SUMMARIZER, "--no-authorization"];
    const password = "with your password, you may: tessera deployment update summarizer";
    to.onRevision = () => {
      throw notOpenable("summarizer");
    };
    const opening = await to.run(deploy);
    expect(opening).toMatchObject({ code: 1, stdout: "" });
    expect(opening.stderr).toContain(password);
    to.onRevision = () => {
      throw problem("ACCESS_DENIED", "this asks for a token with developer operations access");
    };
    const otherwise = await to.run(deploy);
    expect(otherwise).toMatchObject({ code: 1, stdout: "" });
    expect(otherwise.stderr).toContain("developer operations access\n");
    expect(otherwise.stderr).toContain("tessera token list");
    expect(otherwise.stderr).not.toContain("password");
  });

  it("goes on from where it was after Ctrl-C during the upload", async () => {
    to.onUpload = (count) => {
      if (count === 2) {
        to.person.interrupt();
      }
    };
    const { code, stderr } = await to.run(["deploy", DIGITS]);
    expect(code).toBe(130);
    expect(stderr).toContain("Nothing was deployed.");
    expect(to.revisions).toHaveLength(0);
    to.onUpload = () => {};
    expect(await to.run(["deploy", DIGITS])).toMatchObject({ code: 0 });
    expect(to.revisions).toHaveLength(1);
  });

  it("says that the roll-out goes on after Ctrl-C while it waits", async () => {
    to.states = [{ status: DeploymentStatus.STARTING }];
    to.person.beforeWaitEnds = () => to.person.interrupt();
    const { code, stdout, stderr } = await to.run(["deploy", SUMMARIZER]);
    expect({ code, stdout }).toEqual({ code: 130, stdout: "" });
    expect(stderr).toMatch(
      /The roll-out of revision 1 goes on: tessera deployment get summarizer\n$/,
    );
  });
});

describe("the command line of tessera deploy", () => {
  it.each([
    ["--workers", "4..1"],
    ["--ready-timeout", "25h"],
    ["--ready-timeout", "soon"],
    ["--workers", "0"],
    ["--workers", "1..101"],
    ["--memory", "512"],
    ["--memory", "1Mi"],
    ["--cpu", "0"],
    ["--cpu", "many"],
    ["--name", "No_Label"],
    ["--env", "sesame"],
    ["--secret", "API_KEY=sesame"],
    ["--remove-secret", "a-b"],
  ])("refuses %s %s before anything is done", async (flag, value) => {
    const { code, stdout, stderr } = await to.run(["deploy", SUMMARIZER, flag, value]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(new RegExp(`^tessera: .*(?:${flag}|name)`, "i"));
    expect(stderr).not.toContain("sesame");
  });

  it("says what is missing", async () => {
    expect(await to.run(["deploy", folder])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`there is no ${join(folder, "tessera.yaml")}`),
    });
    file("tessera.yaml", "name: x\n");
    expect(await to.run(["deploy", folder])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("does not say which file the service is"),
    });
    expect(await to.run(["deploy", "missing.ts"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("service file missing.ts does not exist"),
    });
  });
});

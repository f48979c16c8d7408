/** The commands of the documents that run with the small image, in an order in which they can. */
import { strict as assert } from "node:assert";
import { cpSync, existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../program.ts";
import { run } from "../run.ts";
import { CommandTrial, URL } from "./command-trial.ts";
import { OF_A_DEPLOYMENT, THAT_READ } from "./documented.ts";

/** What the summarizer makes of three. */
const SENTENCE = /^(?:One|Two|Three)\.$/;
/** The id in the examples of docs/http.md. */
const SHOWN_ID = "019a0b5e-7c1d-800f-8f21-5b0c6f1d2e3a";

export async function runSmallCommands(archive: string): Promise<void> {
  using trial = new CommandTrial(archive, "small");
  writeProject(trial.work);
  await serve(trial);
  await start(trial);
  await runPlatform(trial);
  trial.finish();
}

/** A project with the summarizer, whose SDK is that of the image. */
function writeProject(folder: string): void {
  const summarizer = join(ROOT, "examples/summarizer");
  cpSync(summarizer, join(folder, "examples/summarizer"), { recursive: true });
  cpSync(summarizer, folder, { recursive: true });
  mkdirSync(join(folder, "node_modules"));
  cpSync(join(ROOT, "node_modules/zod"), join(folder, "node_modules/zod"), { recursive: true });
  symlinkSync("/usr/local/lib/tessera", join(folder, "node_modules/tessera-platform"));
  run("chmod", ["-R", "a+rX", folder]);
}

async function serve(trial: CommandTrial): Promise<void> {
  const another = trial.block("docs/quickstart.md", "npx tessera serve examples");
  await (await trial.serve(another, "http://localhost:3001"))[Symbol.asyncDispose]();

  await using _served = await trial.serve(trial.block("README.md", "npx tessera serve service.ts"));
  const [call = "", submit = "", get = ""] = trial
    .block("README.md", "curl http://localhost:3000/summarize")
    .split(/\n(?=curl )/);
  assert.match(trial.run(call), SENTENCE);
  const { task_id: id } = JSON.parse(trial.run(submit)) as { readonly task_id: string };
  assert.deepEqual(JSON.parse(trial.run(get.replace("…", id))), ["One. Two. Three."]);
  const called: unknown = JSON.parse(trial.run(trial.block("docs/calls.md", "npx buf curl")));
  assert.match((called as { readonly value: string }).value, SENTENCE);
  assert.match(
    trial.run(trial.block("docs/calls.md", "npx tessera call summarize")),
    /One\. Two\./,
  );
  trial.run(trial.block("docs/python.md", "npx tessera client generate"));
  assert(existsSync(join(trial.work, "summarizer.py")), "no client in Python was generated");
  callAsDocumented(trial);
}

/** The calls of a deployment in docs/http.md, for a task that has ended. */
function callAsDocumented(trial: CommandTrial): void {
  const submit = `curl ${URL}/summarize_batch/submit --json '{"texts": ["One. Two."]}'`;
  const { task_id: id } = JSON.parse(trial.run(submit)) as { readonly task_id: string };
  trial.run(`curl "${URL}/summarize_batch/get?task_id=${id}&wait=30"`);
  for (const { text } of trial.blocks("docs/http.md", OF_A_DEPLOYMENT)) {
    const status = text
      .replace(SHOWN_ID, id)
      .replace("curl ", "curl -o /dev/null -w '%{http_code}' ");
    const cancels = text.includes("/cancel?");
    const expected = cancels ? "409" : /submit|retry/.test(text) ? "202" : "200";
    const said = trial.run(cancels ? `${status.trim()} || true` : status, {
      env: { TOKEN: "any" },
    });
    assert.equal(said, expected, text);
  }
}

async function start(trial: CommandTrial): Promise<void> {
  for (const [page, command] of [
    ["docs/platform.md", "npx tessera start"],
    ["docs/tracing.md", "OTEL_EXPORTER"],
  ] as const) {
    await (await trial.serve(trial.block(page, command)))[Symbol.asyncDispose]();
  }
}

async function runPlatform(trial: CommandTrial): Promise<void> {
  // The password is the last that it prints.
  trial.logIn((await trial.install("npm run package:image   ")).split("\n").at(-1) ?? "");
  trial.run(trial.block("docs/cli.md", "source <(tessera completion"));

  const deployed = trial.run(trial.block("docs/deploy.md", "npx tessera deploy examples"));
  assert.match(deployed, /summarizer/);
  const calls = trial.block("docs/deploy.md", "curl http://summarizer").split(/\n(?=curl )/);
  assert.equal(calls.length, 2);
  for (const call of calls) {
    assert.match(trial.run(call), SENTENCE);
  }
  const [app = "", submit = "", status = "", get = ""] = trial
    .block("docs/deploy.md", "app=http://summarizer")
    .trim()
    .split("\n");
  const { task_id: id } = JSON.parse(trial.run(`${app}\n${submit}`)) as {
    readonly task_id: string;
  };
  assert(trial.run(`${app}\n${status.replace("…", id)}`).includes(id));
  const result = trial.run(`${app}\n${get.replace("…", id)}`);
  assert.deepEqual(JSON.parse(result), ["One. Two. Three."]);

  const developer = trial.env.SERVICE_CLOUD_API_KEY ?? "";
  trial.run("podman exec tessera tessera admin monitoring enable --organization acme");
  const monitoring = trial.createToken("prometheus", "--kind organization --monitoring");
  // The page's examples read one that is called as the deployment is.
  trial.run("npx tessera budget create summarizer tasks 1000000");
  for (const { text } of trial.blocks("docs/http.md", THAT_READ)) {
    trial.run(text, { env: { TOKEN: text.includes("/federate") ? monitoring : developer } });
  }
  protect(trial);
  const worker = trial.block("docs/workers.md", "tessera token create");
  assert.match(trial.runSignedIn(worker.replace("ocr", "summarizer")), /tsrp_/);

  const backup = trial.block("docs/backup.md", "tessera admin backup");
  const passphrase = { env: { TESSERA_BACKUP_PASSPHRASE: "a long enough passphrase" } };
  trial.run(backup.replaceAll(/2026-\d\d-\d\d/g, "$(date +%F)"), passphrase);
  const restored = { env: { TESSERA_DATA: "/var/lib/tessera-restored" } };
  trial.run(trial.block("docs/upgrade.md", "tessera admin migrate"), restored);
}

/** Asks for a token from then on. */
function protect(trial: CommandTrial): void {
  const [update = "", create = "", ...call] = trial
    .block("docs/deploy.md", "npx tessera deployment update")
    .split("\n");
  trial.run(update);
  const [value = "none"] = /tsrp_\w+/.exec(trial.run(create)) ?? [];
  const calls = call.join("\n");
  assert.match(trial.run(calls.replace("tsrp_…", value)), SENTENCE);
  assert.throws(() => trial.run(calls), /401/);
}

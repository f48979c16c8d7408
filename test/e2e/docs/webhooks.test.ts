/** The receivers of docs/webhooks.md, as they stand there, take what a platform sends. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { environment, pythonMissing, ROOT } from "../clients/python-environment.ts";
import { artifact, call, until, World } from "../hosting/world.ts";
import { Folder } from "../start/platform.ts";

const deployment = "echo";

function block(language: string): string {
  const page = readFileSync(join(ROOT, "docs/webhooks.md"), "utf8");
  const [, text = ""] = new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\``, "m").exec(page) ?? [];
  return text;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}

/** Runs a receiver with a webhook of a platform, and answers the line that it prints of a task. */
async function told(command: string, file: string, source: string): Promise<string> {
  using folder = new Folder();
  await using world = await World.start({ env: { TESSERA_ALLOW_EGRESS: "127.0.0.1" } });
  await world.deployed(deployment, await artifact());
  const port = await freePort();
  const { webhooks } = world.client;
  const url = `http://127.0.0.1:${port}/`;
  const webhook = { name: "app", url };
  const { secret } = await webhooks.createWebhook({ deployment, webhook });
  symlinkSync(join(ROOT, "node_modules"), join(folder.path, "node_modules"));
  writeFileSync(join(folder.path, file), source);
  const child: ChildProcess = spawn(command, [file], {
    cwd: folder.path,
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, PORT: String(port), WEBHOOK_SECRET: secret },
  });
  try {
    let printed = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      printed += chunk;
    });
    await until(
      () =>
        fetch(url, { method: "POST", body: "{}" }).then(
          ({ status }) => status,
          () => 0,
        ),
      (status) => status === 401,
    );
    const body = { text: "hello" };
    const submitted = await call(world.platform, deployment, "/work/submit", { body });
    await until(
      async () => printed,
      (text) => text.includes("\n"),
    );
    return printed.replace(submitted.json.task_id, "ID");
  } finally {
    child.kill();
    await once(child, "exit");
  }
}

describe("the receivers of the page of webhooks", () => {
  it("takes a message in TypeScript", async () => {
    const printed = await told(process.execPath, "receiver.ts", block("ts"));
    expect(printed).toBe('task.success ID "one hello"\n');
  });

  const skipped = leftOut(pythonMissing);
  it.skipIf(skipped)(`takes a message in Python${skipped}`, async () => {
    const { python } = await environment({
      name: "webhooks",
      packages: ["standardwebhooks==1.1.0"],
    });
    expect(await told(python, "receiver.py", block("python"))).toBe(
      'task.success ID "one hello"\n',
    );
  });
});

import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { skipped } from "../../pool/sandbox/available.ts";
import { Program } from "../cli/program.ts";
import { artifact, call, until, World } from "./world.ts";

/** The processes of workers whose artifacts are in this folder, bubblewrap's included. */
function workersOf(dataFolder: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      const commandLine = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      return commandLine.includes("worker/main.") && commandLine.includes(dataFolder);
    } catch {
      return false;
    }
  });
}

describe.each(["kernel", "permission"])("a worker at level %s", (level) => {
  it.skipIf(skipped)(
    `that replaces its exit and waits for its node's port is gone 1 s after its node was killed${skipped}`,
    async () => {
      await using world = await World.start();
      await world.deployed("undying", await artifact("undying"), {
        settings: { minWorkers: 2, maxWorkers: 2 },
      });
      await world.platform[Symbol.asyncDispose]();
      const { data } = world.folder;
      const args = ["start", "--port", "0", "--data", data, "--sandbox", level];
      await using program = new Program(args, { cwd: world.folder.path });
      const [, text = ""] = await program.says("stdout", / runs on http:\/\/\S+:(\d+)\n/);
      const port = Number(text);
      const node = { started: { ...world.platform.started, port } };
      const ask = (path: string, body: object) => call(node, "undying", path, { body });
      await until(
        () => ask("/take", { port }),
        ({ status }) => status === 200,
      );
      void ask("/spin", {}).catch(() => {
        // Its node goes.
      });
      await until(
        () => Promise.resolve(workersOf(data)),
        (pids) => pids.length > 0,
      );
      await program.stop("SIGKILL");
      const killedAtMs = performance.now();
      await until(
        () => Promise.resolve(workersOf(data)),
        (pids) => pids.length === 0,
      );
      expect(performance.now() - killedAtMs).toBeLessThan(1_000);
      const server = createServer().listen(port, "127.0.0.1");
      await once(server, "listening");
      server.close();
    },
    60_000,
  );
});

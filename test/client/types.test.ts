import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TSC = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));

it("gives a client the types of its service", async () => {
  const project = fileURLToPath(new URL("tsconfig.json", import.meta.url));
  const checked = promisify(execFile)(process.execPath, [TSC, "-p", project], { cwd: ROOT });
  await expect(
    checked.catch((err) => Promise.reject(new Error(err.stdout))),
  ).resolves.toMatchObject({ stdout: "" });
}, 60_000);

/**
 * Exports `proto/` for other languages to `clients/proto/`: the same services and messages with
 * their comments, without the annotations that only the server reads (REST paths, validation,
 * access), and with the three files of Google that they use. What is written compiles alone, with
 * any generator, and is the module for the Buf registry. `--output <folder>` writes elsewhere.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { withoutAnnotations } from "./reference/annotations.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** Messages of ours have these types, and errors carry the last one. */
const USED_OF_GOOGLE = [
  "google/api/httpbody.proto",
  "google/rpc/error_details.proto",
  "google/rpc/status.proto",
];

/** Declares an option and nothing else. */
const OPTION_ONLY = "access.proto";

const { values } = parseArgs({
  options: { output: { type: "string", default: join(ROOT, "clients/proto") } },
});
const { output } = values;

rmSync(join(output, "tessera"), { recursive: true, force: true });
rmSync(join(output, "google"), { recursive: true, force: true });
for (const name of readdirSync(join(ROOT, "proto/tessera/v1"))) {
  if (name !== OPTION_ONLY) {
    const source = readFileSync(join(ROOT, "proto/tessera/v1", name), "utf8");
    write(join("tessera/v1", name), withoutAnnotations(source));
  }
}
for (const path of USED_OF_GOOGLE) {
  write(path, readFileSync(join(ROOT, "third_party/proto", path), "utf8"));
}
copyFileSync(join(ROOT, "LICENSE"), join(output, "LICENSE"));
const buf = join(ROOT, "node_modules/.bin/buf");
const { status } = spawnSync(buf, ["format", "-w", output, "--path", join(output, "tessera")], {
  stdio: "inherit",
});
process.exitCode = status ?? 1;

function write(path: string, text: string): void {
  const file = join(output, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

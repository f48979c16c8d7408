/**
 * The context of the image: `system/`, `volume/` and `program/` of the Containerfile.
 *
 * A system is Node, certificates, time zones, and a user. It has no shell and no
 * package manager. The small one has the libraries that `ldd` finds for Node and for
 * every native module; that for services in Python has what python.ts writes.
 */
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { writeNode, writeProgram } from "../program.ts";
import { run } from "../run.ts";
import { librariesOf, nativeModules } from "./libraries.ts";
import { writePython } from "./python.ts";

export type System = "small" | "python";

/** There are some 140; far fewer are a package that is not whole. */
const MIN_AUTHORITIES = 100;

/** The user, as numbers so that `runAsNonRoot` can tell; its home is the volume. */
export const USER = 10001;

const PASSWD = [
  "root:x:0:0:root:/root:/sbin/nologin",
  `tessera:x:${USER}:${USER}:Tessera:/data:/sbin/nologin`,
];
const GROUP = ["root:x:0:", `tessera:x:${USER}:`];

/** Its first line names Node by its path: there is no `env`. */
const PROGRAM = '#!/usr/local/bin/node\nimport "/usr/local/lib/tessera/bin/tessera.js";\n';

/** Writes the context into `folder`, whatever was there before. */
export function writeContext(folder: string, system: System): void {
  rmSync(folder, { recursive: true, force: true });
  const root = join(folder, "system");
  const program = join(folder, "program");
  mkdirSync(root, { recursive: true });
  writeProgram(program);
  const bin = join(root, "usr/local/bin");
  const programs = [join(folder, "node"), ...nativeModules(program)];
  writeNode(join(folder, "node"));
  if (system === "python") {
    writePython(root, programs);
  } else {
    writeLibraries(root, programs);
  }
  mkdirSync(bin, { recursive: true });
  renameSync(join(folder, "node"), join(bin, "node"));
  writeFileSync(join(bin, "tessera"), PROGRAM, { mode: 0o755 });
  writeSettings(root);
  mkdirSync(join(folder, "volume/data"), { recursive: true });
  run("chmod", ["0700", join(folder, "volume/data")]);
}

function writeLibraries(root: string, programs: readonly string[]): void {
  for (const path of librariesOf(programs)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    copyFileSync(realpathSync(path), join(root, path));
  }
}

/** What programs read of any system: users, names of hosts, certificates, time zones. */
function writeSettings(root: string): void {
  mkdirSync(join(root, "etc/ssl/certs"), { recursive: true });
  mkdirSync(join(root, "tmp"), { recursive: true });
  run("chmod", ["1777", join(root, "tmp")]);
  writeFileSync(join(root, "etc/passwd"), `${PASSWD.join("\n")}\n`);
  writeFileSync(join(root, "etc/group"), `${GROUP.join("\n")}\n`);
  writeFileSync(join(root, "etc/nsswitch.conf"), "hosts: files dns\n");
  writeFileSync(join(root, "etc/ssl/certs/ca-certificates.crt"), authorities());
  const zones = "usr/share/zoneinfo";
  cpSync(join("/", zones), join(root, zones), {
    recursive: true,
    verbatimSymlinks: true,
    // The same zones again, with and without leap seconds; a link to this machine's own zone.
    filter: (path) => !/\/zoneinfo\/(?:posix|right|localtime)(?:\/|$)/.test(path),
  });
  symlinkSync("/usr/share/zoneinfo/Etc/UTC", join(root, "etc/localtime"));
}

/** Mozilla's certificate authorities, without those that this machine trusts in addition. */
function authorities(): string {
  const folder = "/usr/share/ca-certificates/mozilla";
  const files = readdirSync(folder).filter((name) => name.endsWith(".crt"));
  if (files.length < MIN_AUTHORITIES) {
    throw new Error(`${folder} has ${files.length} certificates; install ca-certificates`);
  }
  return files
    .sort()
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .join("");
}

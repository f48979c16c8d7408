/**
 * The context of the image: `system/`, `volume/` and `program/` of the Containerfile.
 *
 * The small system is Node with the libraries that `ldd` finds for it and for
 * every native module, certificates, time zones, and a user. It has no shell and
 * no package manager: nothing in it to update but Node and libc.
 *
 * The system for services in Python is Debian by mmdebstrap, with Python and
 * bubblewrap, because these services run in the kernel's sandbox only.
 */
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { writeNode, writeProgram } from "../program.ts";
import { run } from "../run.ts";
import { librariesOf, nativeModules } from "./libraries.ts";

export type System = "small" | "python";

/** What the Python system has beside Debian's required packages. */
const PYTHON_PACKAGES = [
  "bubblewrap",
  "ca-certificates",
  "libpython3-stdlib",
  "libstdc++6",
  "python3",
  "python3-venv",
  "tzdata",
  "util-linux",
];

/** The user, as numbers so that `runAsNonRoot` can tell; its home is the volume. */
const USER = 10001;

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
  if (system === "python") {
    writeDebian(root);
  }
  for (const path of ["etc/ssl/certs", "tmp", "usr/local/bin"]) {
    mkdirSync(join(root, path), { recursive: true });
  }
  const node = join(root, "usr/local/bin/node");
  writeNode(node);
  writeFileSync(join(root, "usr/local/bin/tessera"), PROGRAM, { mode: 0o755 });
  if (system === "small") {
    writeSmall(root, [node, ...nativeModules(program)]);
  }
  run("chmod", ["1777", join(root, "tmp")]);
  mkdirSync(join(folder, "volume/data"), { recursive: true });
  run("chmod", ["0700", join(folder, "volume/data")]);
}

function writeSmall(root: string, programs: readonly string[]): void {
  writeFileSync(join(root, "etc/passwd"), `${PASSWD.join("\n")}\n`);
  writeFileSync(join(root, "etc/group"), `${GROUP.join("\n")}\n`);
  writeFileSync(join(root, "etc/nsswitch.conf"), "hosts: files dns\n");
  for (const path of librariesOf(programs)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    copyFileSync(realpathSync(path), join(root, path));
  }
  copyFileSync(
    "/etc/ssl/certs/ca-certificates.crt",
    join(root, "etc/ssl/certs/ca-certificates.crt"),
  );
  const zones = "usr/share/zoneinfo";
  cpSync(join("/", zones), join(root, zones), {
    recursive: true,
    verbatimSymlinks: true,
    // The same zones again, with and without leap seconds; a link to this machine's own zone.
    filter: (path) => !/\/zoneinfo\/(?:posix|right|localtime)(?:\/|$)/.test(path),
  });
  symlinkSync("/usr/share/zoneinfo/Etc/UTC", join(root, "etc/localtime"));
}

/** Debian of this machine's release: the libraries that Node was tried with. */
function writeDebian(root: string): void {
  const suite = run("sh", ["-c", '. /etc/os-release; echo "$VERSION_CODENAME"']);
  const excluded = ["/usr/share/{doc,man,info,locale,lintian}/*", "/var/cache/*", "/var/log/*"];
  run(
    "mmdebstrap",
    [
      "--variant=minbase",
      `--include=${PYTHON_PACKAGES.join(",")}`,
      ...excluded.map((path) => `--dpkgopt=path-exclude=${path}`),
      "--dpkgopt=path-include=/usr/share/doc/*/copyright",
      ...[
        ...PASSWD.slice(1).map((line) => ["passwd", line]),
        ...GROUP.slice(1).map((line) => ["group", line]),
      ].map(([file, line]) => `--customize-hook=echo '${line}' >>"$1/etc/${file}"`),
      // What differs with the time and the machine of the build.
      '--customize-hook=rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/* "$1"/var/log/* "$1"/dev/* "$1"/etc/machine-id "$1"/etc/resolv.conf "$1"/etc/hostname',
      suite,
      root,
    ],
    { env: { SOURCE_DATE_EPOCH: "0" } },
  );
  if (!existsSync(join(root, "usr/bin/bwrap"))) {
    throw new Error(`mmdebstrap ${suite} made a system without bubblewrap`);
  }
}

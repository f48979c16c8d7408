/** What of packaging is cheap to check; `npm run package:check` does the rest. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { afterAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { writeManifest } from "../../packaging/program.ts";
import { changelogOf, versions } from "../../packaging/release/versions.ts";
import { isInstalled } from "../../packaging/run.ts";
import { START_SETTINGS } from "../../src/config/start-settings.ts";

const ROOT = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "tessera-packaging-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const skipped = (program: string): string =>
  isInstalled(program) ? "" : ` (SKIPPED: ${program} is not installed)`;

describe("a release", () => {
  it("has one version everywhere", () => {
    expect(new Set(versions().map(({ version }) => version)).size).toBe(1);
  });

  it("takes the notes of its version from the changelog", () => {
    const changelog =
      "# Changelog\n\n## Unreleased\n\nb\n\n## 1.2.3 (2026-11-24)\n\n- a\n\n## 1.2.2\n";
    expect(changelogOf("1.2.3", changelog)).toBe("- a");
    expect(changelogOf("1.2", changelog)).toBeUndefined();
  });
});

describe("the program of the image and the tarball", () => {
  it("has the optional packages, and every package at the version of the lock", () => {
    const program = join(folder, "program");
    mkdirSync(program);
    writeManifest(program);
    const read = (path: string) => JSON.parse(readFileSync(path, "utf8"));
    const own = read(join(program, "package-lock.json")).packages;
    const locked = read(join(ROOT, "package-lock.json")).packages;
    for (const name of Object.keys(read(join(ROOT, "package.json")).peerDependencies)) {
      expect(own[`node_modules/${name}`]).not.toHaveProperty("dev");
    }
    const resolved = (packages: Readonly<Record<string, { readonly integrity?: string }>>) =>
      Object.entries(packages).map(([path, { integrity }]) => [path, integrity]);
    expect(resolved(own)).toEqual(resolved(locked));
  });
});

describe.skipIf(!isInstalled("systemd-analyze"))(
  `the systemd unit${skipped("systemd-analyze")}`,
  () => {
    /** The unit with programs that are there: systemd looks for them. */
    function unit(): string {
      const programs = join(folder, "bin");
      mkdirSync(programs, { recursive: true });
      for (const name of ["tessera", "wait-until-ready"]) {
        writeFileSync(join(programs, name), "", { mode: 0o755 });
      }
      const text = readFileSync(join(ROOT, "packaging/systemd/tessera.service"), "utf8");
      const path = join(folder, "tessera.service");
      writeFileSync(path, text.replaceAll("/opt/tessera/bin", programs));
      return path;
    }

    const verify = (path: string) => {
      const args = ["verify", path];
      const { status, stderr } = spawnSync("systemd-analyze", args, { encoding: "utf8" });
      return { status, stderr };
    };

    /** What systemd says where the exposure is above a threshold, in tenths; otherwise nothing. */
    const exposure = (path: string, threshold: number): string => {
      const args = ["security", "--offline=true", `--threshold=${threshold}`, path];
      const { status, stdout } = spawnSync("systemd-analyze", args, { encoding: "utf8" });
      return status === 0 ? "" : stdout.slice(-200);
    };

    it("is understood whole by systemd, which only complains of what it does not know", () => {
      expect(verify(unit())).toEqual({ status: 0, stderr: "" });
    });

    it("exposes at most 2.0", () => {
      expect(exposure(unit(), 20)).toBe("");
    });

    it("is understood with the drop-in for bubblewrap, and exposes at most 3.7 then", () => {
      const path = unit();
      const dropIns = `${path}.d`;
      mkdirSync(dropIns);
      const file = join(dropIns, "kernel-sandbox.conf");
      const text = readFileSync(join(ROOT, "packaging/systemd/kernel-sandbox.conf"), "utf8");
      try {
        writeFileSync(file, text);
        expect(verify(path)).toEqual({ status: 0, stderr: "" });
        // More than without: the drop-in is read.
        expect(exposure(path, 20)).not.toBe("");
        expect(exposure(path, 37)).toBe("");
        writeFileSync(file, `${text}RestrictNamespacs=no\n`);
        expect(verify(path).stderr).toContain("RestrictNamespacs");
      } finally {
        rmSync(dropIns, { recursive: true });
      }
    });
  },
);

describe("the compose file", () => {
  interface Service {
    readonly environment?: Readonly<Record<string, string>>;
    readonly depends_on?: Readonly<Record<string, unknown>>;
    readonly volumes?: readonly string[];
    readonly profiles?: readonly string[];
  }
  const text = readFileSync(join(ROOT, "packaging/compose/compose.yaml"), "utf8");
  const compose = parse(text, { merge: true }) as {
    readonly services: Readonly<Record<string, Service>>;
    readonly volumes: Readonly<Record<string, unknown>>;
  };

  it("is what the Compose Specification allows", () => {
    const schema = readFileSync(join(ROOT, "third_party/compose-spec/compose-spec.json"), "utf8");
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    (formats as unknown as typeof formats.default)(ajv);
    const validate = ajv.compile(JSON.parse(schema));
    expect(validate(compose), JSON.stringify(validate.errors)).toBe(true);
    const { services } = compose;
    const misspelt = { ...services, other: { ...services.tessera, read_onyl: true } };
    expect(validate({ ...compose, services: misspelt })).toBe(false);
  });

  it("names only volumes, services and settings that there are", () => {
    const known = Object.values(START_SETTINGS).map(({ variable }) => variable);
    for (const [name, service] of Object.entries(compose.services)) {
      const mounted = (service.volumes ?? []).map((volume) => volume.split(":")[0] ?? "");
      expect(Object.keys(compose.volumes)).toEqual(expect.arrayContaining(mounted));
      expect(Object.keys(compose.services)).toEqual(
        expect.arrayContaining(Object.keys(service.depends_on ?? {})),
      );
      if (name.startsWith("tessera")) {
        expect(known).toEqual(expect.arrayContaining(Object.keys(service.environment ?? {})));
      }
    }
    expect(compose.services["tessera-sqlite"]?.profiles).toEqual(["sqlite"]);
  });
});

describe.skipIf(!isInstalled("helm"))(`the chart${skipped("helm")}`, () => {
  const template = (...values: readonly string[]) =>
    spawnSync(
      "helm",
      ["template", "t", "charts/tessera", ...values.flatMap((it) => ["--set", it])],
      {
        cwd: ROOT,
        encoding: "utf8",
      },
    );

  it("makes a Deployment on Postgres and a StatefulSet on SQLite", () => {
    expect(template("existingSecret=s").stdout).toContain("kind: Deployment");
    expect(template("database=sqlite", "replicas=1").stdout).toContain("kind: StatefulSet");
  });

  it("refuses several replicas on SQLite, and Postgres without a secret", () => {
    expect(template("database=sqlite", "replicas=2").stderr).toContain("/replicas");
    expect(template().stderr).toContain("/existingSecret");
  });
});

/**
 * Makes the files of a release: `npm run release -- [--set VERSION] [--dry-run] [--image] [--output FOLDER]`.
 *
 * `--set` writes one version everywhere, and ends; commit that with the changelog.
 * Without it, the versions have to agree, and the changelog has to have a section
 * of the version (with --dry-run, the section Unreleased will do). Then the folder has
 * the npm packages (the whole, and the client alone), the wheel and the sources for
 * Python, the tarball, the chart, the images (--image: needs buildah and root), the notes,
 * an SBOM (CycloneDX) and SHA256SUMS; with TESSERA_MINISIGN_KEY, the path of a key, also the signature of the sums. Files
 * are named as they are published, and nothing is published: that is for who holds
 * the accounts. The same commit gives the same sums.
 */
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { buildClient } from "../client/build.ts";
import { buildImage } from "../image/build.ts";
import { ROOT, writeManifest } from "../program.ts";
import { GZIP, isInstalled, run, writeTar } from "../run.ts";
import { buildTarball } from "../tarball/build.ts";
import { buildPython } from "./python.ts";
import { changelogOf, setVersion, versions } from "./versions.ts";

const VERSION = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?$/;

interface ReleaseOptions {
  readonly output: string;
  readonly dryRun: boolean;
  readonly image: boolean;
}

/** The SBOM of what runs, without what npm makes anew each time. */
function sbom(): string {
  const args = ["sbom", "--sbom-format", "cyclonedx", "--omit", "dev", "--package-lock-only"];
  const scratch = mkdtempSync(join(tmpdir(), "tessera-sbom-"));
  // Its name is in the document.
  const folder = join(scratch, "tessera-platform");
  let printed: string;
  try {
    mkdirSync(folder);
    writeManifest(folder);
    printed = run("npm", args, { cwd: folder });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  const { serialNumber: _, ...document } = JSON.parse(printed);
  const { timestamp: __, ...metadata } = document.metadata;
  return `${JSON.stringify({ ...document, metadata }, null, 2)}\n`;
}

function agreedVersion(): string {
  const found = versions();
  const [first] = found;
  const other = found.find(({ version }) => version !== first?.version);
  if (first === undefined || other !== undefined) {
    const list = found.map(({ file, version }) => `  ${version}  ${file}`).join("\n");
    throw new Error(`the versions differ; set one with --set:\n${list}`);
  }
  return first.version;
}

async function release({ output, dryRun, image }: ReleaseOptions): Promise<void> {
  const version = agreedVersion();
  const changelog = readFileSync(join(ROOT, "CHANGELOG.md"), "utf8");
  const notes =
    changelogOf(version, changelog) ?? (dryRun ? changelogOf("Unreleased", changelog) : undefined);
  if (notes === undefined) {
    throw new Error(`CHANGELOG.md has no section "## ${version}": rename Unreleased`);
  }
  if (!dryRun && run("git", ["status", "--porcelain"], { cwd: ROOT }) !== "") {
    throw new Error("there are changes that are not committed; commit them, or use --dry-run");
  }
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output, { recursive: true });
  run("npm", ["pack", "--ignore-scripts", "--pack-destination", output], { cwd: ROOT });
  await buildClient(output);
  buildTarball(output);
  buildPython(output);
  if (image) {
    buildImage("small", output);
    buildImage("python", output);
  } else {
    process.stderr.write("SKIPPED: the images, without --image\n");
  }
  if (isInstalled("helm")) {
    // Packed by tar: helm writes the time of the build into its own archive.
    run("helm", ["lint", join(ROOT, "charts/tessera"), "--set", "existingSecret=tessera"]);
  } else {
    process.stderr.write("SKIPPED: helm lint of the chart, helm is not installed\n");
  }
  writeTar(join(output, `tessera-chart-${version}.tgz`), {
    folder: join(ROOT, "charts"),
    name: "tessera",
    options: ["--mode=u=rwX,go=rX", GZIP],
  });
  writeFileSync(join(output, `tessera-${version}.cdx.json`), sbom());
  writeFileSync(join(output, "NOTES.md"), `${notes}\n`);
  const sums = readdirSync(output)
    .sort()
    .map((name) => {
      const digest = createHash("sha256")
        .update(readFileSync(join(output, name)))
        .digest("hex");
      return `${digest}  ${name}\n`;
    });
  const sumsFile = join(output, "SHA256SUMS");
  writeFileSync(sumsFile, sums.join(""));
  const key = process.env.TESSERA_MINISIGN_KEY;
  if (key) {
    run("minisign", ["-S", "-s", key, "-m", sumsFile, "-t", `tessera ${version}`]);
  } else {
    process.stderr.write("SKIPPED: the signature, TESSERA_MINISIGN_KEY is not set\n");
  }
  process.stdout.write(sums.join(""));
}

const { values } = parseArgs({
  options: {
    set: { type: "string" },
    "dry-run": { type: "boolean", default: false },
    image: { type: "boolean", default: false },
    output: { type: "string", default: join(ROOT, "packaging/out/release") },
  },
});
try {
  if (values.set === undefined) {
    const { image, "dry-run": dryRun } = values;
    await release({ output: resolve(values.output), dryRun, image });
  } else if (VERSION.test(values.set)) {
    setVersion(values.set);
  } else {
    throw new Error(`--set takes a version such as 1.2.3, not ${values.set}`);
  }
} catch (err) {
  process.stderr.write(`release: ${err instanceof Error ? err.message : err}\n`);
  process.exitCode = 1;
}

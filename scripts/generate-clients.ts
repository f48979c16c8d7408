/**
 * Generates gRPC stubs from `proto/`: `npm run generate:clients` for all
 * languages, `npm run generate:clients -- go` for one. Output goes to
 * `clients/<language>/gen`, or below `--output`, and is not committed. buf's
 * plugins run locally; they come from Go's module proxy and from PyPI, which
 * also provides Go itself where it is missing or too old.
 */
import { readdirSync, readFileSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { goMissing, goPrograms } from "../test/e2e/clients/go-environment.ts";
import { environment, pythonMissing, ROOT, run } from "../test/e2e/clients/python-environment.ts";

const GO_PLUGINS = [
  "google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12",
  "google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2",
];

const BUF = join(ROOT, "node_modules/.bin/buf");

export type Language = "go" | "python-grpc";

const WRITERS: Readonly<Record<Language, (output: string) => Promise<void>>> = {
  go: async (output) => {
    if (goMissing !== undefined) {
      throw new Error(
        `${goMissing}: install it from https://go.dev/dl, or write only the others: npm run generate:clients -- python-grpc`,
      );
    }
    await generate("go", { output, plugins: await goPrograms(GO_PLUGINS) });
  },
  "python-grpc": async (output) => {
    const { python } = await pythonForGrpc();
    await generate("python-grpc", { output, plugins: dirname(python) });
    const paths = ["-I", "proto", "-I", "third_party/proto", `--grpc_python_out=${output}/gen`];
    const files = readdirSync(join(ROOT, "proto/tessera/v1")).map((name) => `tessera/v1/${name}`);
    await run(python, ["-m", "grpc_tools.protoc", ...paths, ...files]);
  },
};

/** A Python environment with the generator, the packages that stubs need, and `more`. */
export async function pythonForGrpc(more: readonly string[] = []) {
  if (pythonMissing !== undefined) {
    throw new Error(
      `${pythonMissing}: install it, or write only the others: npm run generate:clients -- go`,
    );
  }
  const packages = readFileSync(join(ROOT, "clients/python-grpc/requirements.txt"), "utf8");
  return await environment({ name: "grpc", packages: [...packages.trim().split("\n"), ...more] });
}

/** Runs buf with the template and the plugins folder of a language. */
async function generate(
  language: Language,
  { output, plugins }: { readonly output: string; readonly plugins: string },
): Promise<void> {
  const template = join(ROOT, "clients", language, "buf.gen.yaml");
  const env = { PATH: [plugins, process.env.PATH].join(delimiter) };
  await run(BUF, ["generate", "--template", template, "--output", output], { env });
}

/** Writes the stubs of a language to `<output>/gen`; rejects with the reason of a failure. */
export async function generateStubs(language: Language, output: string): Promise<void> {
  await WRITERS[language](resolve(output));
}

/** The command; resolves with its exit code. */
async function main(): Promise<number> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { output: { type: "string" } },
  });
  const all = Object.keys(WRITERS) as Language[];
  const unknown = positionals.find((name) => !all.some((language) => language === name));
  if (unknown !== undefined) {
    process.stderr.write(`generate:clients: there is no "${unknown}", only ${all.join(", ")}\n`);
    return 2;
  }
  for (const language of all) {
    if (positionals.length === 0 || positionals.includes(language)) {
      const output = join(values.output ?? join(ROOT, "clients"), language);
      await generateStubs(language, output);
      process.stdout.write(`generate:clients: ${join(output, "gen")}\n`);
    }
  }
  return 0;
}

if (import.meta.main) {
  process.exitCode = await main().catch((err: Error) => {
    process.stderr.write(`generate:clients: ${err.message}\n`);
    return 1;
  });
}

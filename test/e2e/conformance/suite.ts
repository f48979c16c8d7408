/** Connect's conformance suite, https://github.com/connectrpc/conformance: its program, and the service that it calls. */
import { join } from "node:path";
import { goPrograms, runGo } from "../clients/go-environment.ts";
import { ROOT, run } from "../clients/python-environment.ts";

const VERSION = "v1.0.7";
const MODULE = "connectrpc.com/conformance";

/** Resolves with the path of the suite's program, built once. */
export async function suiteProgram(): Promise<string> {
  const folder = await goPrograms([`${MODULE}/cmd/connectconformance@${VERSION}`]);
  return join(folder, "connectconformance");
}

/** Writes the code of the suite's messages and of its service into a folder. */
export async function generate(folder: string): Promise<void> {
  const { Dir } = JSON.parse(
    await runGo("go", ["mod", "download", "-json", `${MODULE}@${VERSION}`]),
  ) as { readonly Dir: string };
  const template = {
    version: "v2",
    plugins: [{ local: "protoc-gen-es", out: ".", opt: ["target=js+dts", "import_extension=js"] }],
  };
  const wanted = ["service", "server_compat"].flatMap((name) => [
    "--path",
    join(Dir, `proto/connectrpc/conformance/v1/${name}.proto`),
  ]);
  const bin = join(ROOT, "node_modules/.bin");
  await run(
    join(bin, "buf"),
    [
      ...["generate", join(Dir, "proto"), "--template", JSON.stringify(template)],
      ...["--include-imports", "--output", folder, ...wanted],
    ],
    { env: { PATH: `${bin}:${process.env.PATH}` } },
  );
}

/** The engine keeps the protocols Connect, gRPC and gRPC-Web as Connect's own suite tests them. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { goMissing } from "../clients/go-environment.ts";
import { run } from "../clients/python-environment.ts";
import { generate, suiteProgram } from "./suite.ts";

const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** Go compiles the suite once. */
const TIMEOUT_MS = 600_000;

const skipped = leftOut(goMissing);

it.skipIf(skipped !== "")(
  `passes the suite, without what features.yaml and known-failing.txt name${skipped}`,
  async () => {
    const program = await suiteProgram();
    const said = await run(program, [
      ...["--mode", "server", "--conf", pathOf("features.yaml")],
      ...["--known-failing", `@${pathOf("known-failing.txt")}`],
      // Few at a time: the suite gives up on a case after 20 s, also on a busy machine.
      ...["--max-servers", "2", "--parallel", "4"],
      ...["--", process.execPath, "--disable-warning=ExperimentalWarning", pathOf("server.ts")],
    ]);
    // So that no feature goes missing by itself.
    const [, cases = 0] = (/Total cases: (\d+)/.exec(said) ?? []).map(Number);
    expect(cases, said).toBeGreaterThan(1_800);
  },
  TIMEOUT_MS,
);

it.skipIf(skipped !== "")(
  `calls the service that the suite of this version has${skipped}`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "tessera-conformance-"));
    try {
      await generate(folder);
      await run("diff", ["-r", folder, pathOf("gen")]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
  TIMEOUT_MS,
);

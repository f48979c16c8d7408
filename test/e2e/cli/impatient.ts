/** `tessera serve`, with a drain and a grace that a test can wait for. */
import { parseArgs } from "node:util";
import { serveService } from "../../../src/app/serve.ts";
import { greeting } from "../../../src/cli/serve/greeting.ts";
import { sayStopping, stopSignal } from "../../../src/cli/stopping.ts";
import { readServeConfig } from "../../../src/config/serve.ts";

const flag = { type: "string" } as const;
const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { port: flag, workers: flag, database: flag },
});
const [, path = ""] = positionals;
const { config: read, secrets } = readServeConfig(path, flags, process.env);
const config = { ...read, drainMs: 300, graceMs: 300 };
const signalled = stopSignal();
const served = await serveService(config, secrets);
process.stdout.write(greeting(served, { config, token: undefined, exampleOf: () => ({}) }));
sayStopping(await signalled, config);
await served.stop();

/** The program, with a drain and a grace that a test can wait for. */
import { Command } from "commander";
import { serveService } from "../../../src/app/serve.ts";
import { serveCommand } from "../../../src/cli/serve/serve.ts";
import { readServeConfig } from "../../../src/config/config.ts";

const serve = serveCommand("serve", {
  readConfig(path, flags) {
    const { config, secrets } = readServeConfig(path, flags);
    return { config: { ...config, drainMs: 300, graceMs: 300 }, secrets };
  },
  serve: serveService,
  exampleOf: () => ({}),
  exit: (code) => {
    process.exitCode = code;
  },
});

await new Command("tessera").addCommand(serve).parseAsync(process.argv.slice(2), { from: "user" });

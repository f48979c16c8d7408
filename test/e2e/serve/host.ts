/** The program of `process.ts`: serves a service until its parent tells it to stop, or kills it. */
import { serveService } from "../../../src/app/serve.ts";
import { readServeConfig } from "../../../src/config/config.ts";

const [servicePath = "", database = ":memory:"] = process.argv.slice(2);
const { config } = readServeConfig(servicePath, { port: "0", database }, {});
const service = await serveService({ ...config, logLevel: "silent" }, { token: undefined });

process.on("message", async (message) => {
  if (message === "stop") {
    await service.stop();
    process.exit();
  } else {
    process.send?.({ peakBytes: process.resourceUsage().maxRSS * 1024 });
  }
});
process.on("disconnect", () => process.exit());
process.send?.({ port: service.port });

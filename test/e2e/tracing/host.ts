/**
 * The program of `process.ts`: serves `traced` with what its environment says,
 * and tells which packages of OpenTelemetry were loaded.
 */
import { registerHooks } from "node:module";

const loaded = new Set<string>();
registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context);
    const [found] = /@opentelemetry\/[\w-]+/.exec(resolved.url) ?? [];
    if (found !== undefined) {
      loaded.add(found);
    }
    return resolved;
  },
});

const { serveService } = await import("../../../src/app/serve.ts");
const { readServeConfig } = await import("../../../src/config/serve.ts");
const flags = { port: "0", workers: "1", env: ["TRACED_SECRET"] };
const { config, secrets } = readServeConfig(process.argv[2] ?? "", flags, process.env);
const service = await serveService({ ...config, graceMs: 300, drainMs: 300 }, secrets);
process.on("message", async () => {
  await service.stop();
  process.send?.({ loaded: [...loaded].sort() });
  process.disconnect();
});
process.send?.({ port: service.port });

/**
 * A server for the scrape benchmark: `tessera serve` of the no-op service on
 * the database of the first argument, with `/federate` of an organization in
 * the same process that has as many series as the second argument says.
 */
import { fileURLToPath } from "node:url";
import Fastify from "fastify";
import { serveService } from "../src/app/serve.ts";
import { readServeConfig } from "../src/config/serve.ts";
import { AddedLabels } from "../src/metrics/external-labels.ts";
import { ownSamples } from "../src/metrics/families.ts";
import { federate } from "../src/metrics/federate.ts";
import { parseSelectors } from "../src/metrics/selector/list.ts";
import { sendText } from "../src/server/monitoring/send.ts";
import { filled, ORGANIZATION_ID } from "./filled.ts";

const [database = "", series = "100000"] = process.argv.slice(2);
const { config, secrets } = readServeConfig(
  fileURLToPath(new URL("noop.ts", import.meta.url)),
  { port: "0", database, workers: "1" },
  { TESSERA_LOG_LEVEL: "warn" },
);
const service = await serveService(config, secrets);

const sources = [ownSamples(filled(Number(series)))];
const added = new AddedLabels();
const selectors = await parseSelectors(['{__name__=~"tessera_.*"}']);
const app = Fastify();
app.get("/federate", (_req, reply) => {
  const whose = { organizationId: ORGANIZATION_ID, selectors, sources, added };
  return sendText(reply, federate({ ...whose, nowMs: Date.now() }));
});
const federating = await app.listen({ port: 0, host: "127.0.0.1" });
process.once("SIGTERM", () => {
  void Promise.all([app.close(), service.stop()]).then(() => process.exit());
});
process.stdout.write(`serving ${service.port} ${federating}\n`);

/** A Fastify server that does nothing in both calls of a lifecycle: what the framework alone reaches. */
import Fastify from "fastify";

const app = Fastify();
const submitted = JSON.stringify({
  task_id: "00000000-0000-7000-8000-000000000000",
  status: "queued",
  created_at: "2026-01-01T00:00:00.000Z",
  expires_at: "2026-01-02T00:00:00.000Z",
});
app.post("/noop/submit", (_req, reply) => reply.code(202).type("application/json").send(submitted));
app.get("/noop/get", (_req, reply) => reply.type("application/json").send("null"));
await app.listen({ port: 0, host: "127.0.0.1" });
process.once("SIGTERM", () => void app.close());
const address = app.server.address();
process.stdout.write(`port ${typeof address === "object" ? address?.port : ""}\n`);

import { describe, expect, it } from "vitest";
import { prometheusMissing } from "../../metrics/prometheus.ts";
import { lint } from "../../metrics/promtool.ts";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { serve } from "../serve/served.ts";
import { administration, bearer } from "../start/platform.ts";

const OPERATOR = "of-the-operator";

describe.skipIf(prometheusMissing !== undefined)(`promtool${leftOut(prometheusMissing)}`, () => {
  it("finds a fault where there is one", () => {
    expect(lint("# TYPE a counter\na 1\n").join()).toMatch(/should have "_total" suffix/);
  });

  it("finds nothing in a served service that has had calls, tasks and failures", async () => {
    const served = await serve("faults");
    try {
      const retried = await served.submit("flaky", { succeeds: 9 });
      expect(await served.ended("flaky", retried)).toMatchObject({ status: "failure" });
      const restarted = await served.submit("exit", { times: 1 });
      expect(await served.ended("exit", restarted)).toMatchObject({ status: "success" });
      expect((await served.post("/flaky", { succeeds: "no number" })).status).toBe(400);
      expect((await served.post("/nothing", {})).status).toBe(404);
      const { text } = await served.get("/metrics");
      expect(text).toMatch(/^tessera_tasks_finished_total\{.*outcome="failure".*\} 1$/m);
      expect(lint(text)).toEqual([]);
    } finally {
      await served.stop();
    }
  });

  it("finds nothing in a platform's pages, once a deployment had calls, tasks and failures", async () => {
    await using world = await World.start({ env: { TESSERA_METRICS_TOKEN: OPERATOR } });
    await using operator = await administration(world.folder);
    await operator.setMonitoring("acme", true);
    await world.deployed("echo", await artifact(), { settings: { minWorkers: 1, maxWorkers: 1 } });
    expect((await world.call("echo", "/say", { body: { text: "a" } })).status).toBe(200);
    expect((await world.call("echo", "/say", { body: {} })).status).toBe(400);
    const submitted = await world.call("echo", "/work/submit", { body: { text: "b" } });
    expect(submitted.status, submitted.text).toBe(202);
    const result = await world.call("echo", `/work/get?task_id=${submitted.json.task_id}&wait=20`);
    expect(result.status, result.text).toBe(200);

    const own = await world.call("echo", "/metrics");
    expect(own.text).toMatch(/^said_letters_total\{/m);
    expect(lint(own.text)).toEqual([]);

    const { url } = world.platform;
    const node = await fetch(`${url}/metrics`, { headers: bearer(OPERATOR) });
    const all = await node.text();
    expect(all).toMatch(/^tessera_tasks_finished_total\{.*outcome="success".*\} 1$/m);
    expect(lint(all)).toEqual([]);

    const { value } = await world.platform.createToken(world.cookie, {
      ...{ kind: "organization", access: ["monitoring"], organization: "acme", name: "scraper" },
    });
    const path = `/federate?match[]=${encodeURIComponent('{__name__=~".+"}')}`;
    const federated = await (await fetch(url + path, { headers: bearer(value) })).text();
    expect(federated).toContain("tessera_requests_total{");
    // Like that of Prometheus itself, a federation has no help.
    expect(lint(federated).filter((line) => !line.endsWith(" no help text"))).toEqual([]);
  });
});

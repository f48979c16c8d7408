import { describe, expect, it } from "vitest";
import { OtlpReceiver } from "../../tracing/receiver.ts";
import { TRACED } from "../../tracing/traced.ts";
import { TracedProcess } from "./process.ts";

const FAILED = "spans could not be sent";

describe("without a receiver", () => {
  it("nothing of OpenTelemetry is loaded, and the function gets what the caller sent", async () => {
    await using served = await TracedProcess.start({});
    const { tracestate, traceparent } = TRACED;
    for (const answer of [
      await served.post("/seen", {}, TRACED),
      await served.post("/seen_later", {}, TRACED),
    ]) {
      expect(answer.json).toMatchObject({ traceparent, tracestate });
    }
    const untraced = (await served.post("/seen", {})).json;
    expect(untraced).toEqual({ taskId: expect.any(String) });
    expect(await served.end()).toEqual([]);
  });

  it("neither where it is set and turned off", async () => {
    await using receiver = await OtlpReceiver.start();
    await using served = await TracedProcess.start({
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_TRACES_EXPORTER: "none",
    });
    await served.post("/seen", {}, TRACED);
    expect(await served.end()).toEqual([]);
    expect(receiver.headers).toEqual([]);
  });
});

describe("with a receiver", () => {
  it("spans that have not been sent are, when the server stops", async () => {
    await using receiver = await OtlpReceiver.start();
    await using served = await TracedProcess.start({
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_HEADERS: "x-api-key=sesame%20open,x-team=a",
      OTEL_SERVICE_NAME: "tessera-eu",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
    });
    await served.post("/seen", {}, TRACED);
    expect(await served.end()).toContain("@opentelemetry/sdk-trace");
    expect(receiver.spans.map(({ name }) => name).sort()).toEqual(["attempt seen", "call seen"]);
    expect(receiver.spans[0]?.resource).toMatchObject({
      "service.name": "tessera-eu",
      "deployment.environment.name": "test",
    });
    expect(receiver.headers[0]).toMatchObject({ "x-api-key": "sesame open", "x-team": "a" });
  });

  it("that is away calls go on, and the log says so once", async () => {
    await using receiver = await OtlpReceiver.start();
    receiver.status = 400;
    await using served = await TracedProcess.start({
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=hunter2",
    });
    // Each batch fails, and more than one has to before the count means something.
    for (let batches = 1; batches <= 2; batches++) {
      expect((await served.post("/seen", {}, TRACED)).status).toBe(200);
      await receiver.until(({ headers }) => headers.length >= batches);
    }
    await served.end();
    const lines = served.log().filter(({ msg }) => msg === FAILED);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level: 40, spans: 2 });
    expect(served.lines.join("\n")).not.toContain("hunter2");
  });

  it("that takes no connection does not hold up the end", async () => {
    await using served = await TracedProcess.start({
      // Port 9, discard, is one where nobody listens.
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9",
    });
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => served.post("/seen", {}, TRACED)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(200));
    const beganMs = performance.now();
    await served.end();
    // Two seconds are given to what is left.
    expect(performance.now() - beganMs).toBeLessThan(5_000);
  });
});

import { describe, expect, it } from "vitest";
import { readServeConfig } from "../../src/config/serve.ts";
import { readStartConfig } from "../../src/config/start.ts";
import { fixture } from "../e2e/serve/served.ts";

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };

function read(env: Readonly<Record<string, string>>) {
  const { config, secrets } = readServeConfig(fixture("calls.ts"), {}, env);
  return { tracing: config.tracing, receiver: secrets.tracing };
}

describe("tracing", () => {
  it("is off unless a receiver is named", () => {
    expect(read({})).toEqual({ tracing: undefined, receiver: undefined });
    expect(read({ ...ENDPOINT, OTEL_TRACES_EXPORTER: "none" }).tracing).toBeUndefined();
  });

  it("has the defaults of OpenTelemetry", () => {
    expect(read(ENDPOINT)).toEqual({
      tracing: {
        sampler: "parentbased_always_on",
        ratio: 1,
        serviceName: "tessera",
        resource: {},
      },
      receiver: { url: "http://collector:4318/v1/traces", headers: {} },
    });
  });

  it("takes the standard variables", () => {
    const { tracing, receiver } = read({
      OTEL_EXPORTER_OTLP_ENDPOINT: "https://collector/prefix/",
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20abc, x-team = a=b ",
      OTEL_TRACES_SAMPLER: "traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0.25",
      OTEL_SERVICE_NAME: "eu",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=prod,team=search",
    });
    expect(receiver).toEqual({
      url: "https://collector/prefix/v1/traces",
      headers: { authorization: "Bearer abc", "x-team": "a=b" },
    });
    expect(tracing).toEqual({
      sampler: "traceidratio",
      ratio: 0.25,
      serviceName: "eu",
      resource: { "deployment.environment.name": "prod", team: "search" },
    });
  });

  it("takes an address of traces as it stands", () => {
    const traces = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://traces/in" };
    expect(read({ ...ENDPOINT, ...traces }).receiver?.url).toBe("http://traces/in");
  });

  it.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4317" }, /OTLP_ENDPOINT must be the http/],
    [
      { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
      /PROTOCOL must be one of http\/protobuf/,
    ],
    [{ ...ENDPOINT, OTEL_TRACES_SAMPLER: "jaeger_remote" }, /SAMPLER must be one of/],
    [{ ...ENDPOINT, OTEL_TRACES_SAMPLER_ARG: "2" }, /SAMPLER_ARG must be a number from 0 to 1/],
    [{ ...ENDPOINT, OTEL_RESOURCE_ATTRIBUTES: "team" }, /must be key=value pairs.*"team"/],
  ])("refuses %j", (env, message) => {
    expect(() => read(env)).toThrow(message);
  });

  it("says nothing back that may be a secret", () => {
    const said = (env: Readonly<Record<string, string>>): string => {
      try {
        read({ ...ENDPOINT, ...env });
        return "";
      } catch (err) {
        return String(err);
      }
    };
    expect(said({ OTEL_EXPORTER_OTLP_HEADERS: "hunter2" })).toMatch(/key=value pairs/);
    expect(said({ OTEL_EXPORTER_OTLP_HEADERS: "hunter2" })).not.toContain("hunter2");
    expect(said({ OTEL_EXPORTER_OTLP_ENDPOINT: "ftp://me:hunter2@host" })).not.toContain("hunter2");
  });

  it("is the same for the platform, also from its file of settings", () => {
    const { config, secrets } = readStartConfig({ data: "./nowhere" }, ENDPOINT);
    expect(config.tracing).toMatchObject({ sampler: "parentbased_always_on" });
    expect(secrets.tracing).toMatchObject({ url: "http://collector:4318/v1/traces" });
  });
});

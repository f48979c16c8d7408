import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { parseTesseraFile, readTesseraFile } from "../../../src/cli/deploy/tessera-yaml.ts";
import { WorkerPlace } from "../../../src/client/index.ts";

describe("tessera.yaml", () => {
  it("says what a service is deployed with", () => {
    const text = `
# of the shop
service: src/service.ts
name: shop
authorization: false
workers:
  min: 0
  max: 4
memory: 512Mi
cpu: 1
env:
  PORT: 0080
  EMPTY: ""
  TEXT: "yes"
secrets:
  - API_KEY
include: ["models/*.onnx"]
requires:
  gpu: "*"
  zone: b
place: remote
ready_timeout: 15m
processes: 8
gpus: 2
gpu_memory: 20GiB
packages: [ffmpeg, poppler-utils]
image: registry.example.com/acme/reader:1
models:
  qwen: "hf://Qwen/Qwen3-0.6B"
  llama: { source: "hf://meta-llama/Llama-3.2-1B", token: HF_TOKEN }
  gated: { token: HF_TOKEN }
`;
    expect(parseTesseraFile(text, "tessera.yaml")).toEqual({
      service: "src/service.ts",
      name: "shop",
      authorization: false,
      settings: {
        minWorkers: 0,
        maxWorkers: 4,
        memoryMib: 512,
        cpu: 1,
        env: { PORT: "0080", EMPTY: "", TEXT: "yes" },
        requires: { gpu: "*", zone: "b" },
        place: WorkerPlace.REMOTE,
        readyTimeout: durationFromMs(900_000),
        processes: 8,
        gpus: 2,
        gpuMemoryMib: 20_480,
      },
      secrets: ["API_KEY"],
      include: ["models/*.onnx"],
      packages: ["ffmpeg", "poppler-utils"],
      image: "registry.example.com/acme/reader:1",
      models: {
        qwen: { source: "hf://Qwen/Qwen3-0.6B" },
        llama: { source: "hf://meta-llama/Llama-3.2-1B", token: "HF_TOKEN" },
        gated: { token: "HF_TOKEN" },
      },
    });
  });

  it("may name a program instead of code", () => {
    const text = `
name: llm
command: [vllm, serve, /models/qwen, --port, 8000]
port: 8000
health: /health
timeout: 5m
concurrency: 20
concurrency_per_key: 5
rate_per_key: 100/min
queue: true
metrics: /metrics
openapi: /doc
`;
    expect(parseTesseraFile(text, "tessera.yaml")).toMatchObject({
      name: "llm",
      program: {
        command: ["vllm", "serve", "/models/qwen", "--port", "8000"],
        port: 8000,
        health: "/health",
        timeout: "5m",
        concurrency: 20,
        concurrencyPerKey: 5,
        ratePerKey: "100/min",
        queue: true,
        metrics: "/metrics",
        openapi: "/doc",
      },
    });
  });

  it.each([
    ["command: vllm serve", "1:10: command must be a list of the program and its arguments"],
    ["command: []", "1:10: command must be a list of the program and its arguments"],
    ["command: [a, {b: c}]", "1:14: command must be a list of the program and its arguments"],
    ["command: [a, {port}]", '1:14: command: {port} needs quotes, as "{port}"'],
    ["command: [a]\nport: 0", "2:7: port must be a whole number from 1 to 65535"],
    ["command: [a]\nport: 70000", "2:7: port must be a whole number from 1 to 65535"],
    ["command: [a]\nconcurrency: many", "2:14: concurrency must be a whole number"],
    ["service: a.ts\nport: 80", "2:7: port is of a program: add command"],
    ["service: a.ts\ncommand: [a]", "2:10: there is service as well as command"],
  ])("refuses a program that cannot be: %j", (text, message) => {
    expect(() => parseTesseraFile(text, "tessera.yaml")).toThrow(message);
  });

  it("may leave everything to its default", () => {
    expect(parseTesseraFile("workers: {max: 2}", "tessera.yaml")).toEqual({
      settings: { maxWorkers: 2 },
      secrets: [],
      include: [],
      packages: [],
      models: {},
    });
  });

  it.each([
    ["", "1:1: must have keys"],
    ["- service", "1:1: must have keys"],
    ["name: a\nservise: x.ts", '2:1: "servise" is not a key; there are service, name'],
    ["name: a\nname: b", "2:1: Map keys must be unique"],
    ["name: a\n---\nname: b", "2:1: Source contains multiple documents"],
    ["name: [a", "1:9: "],
    ["name:", "1:6: name has no value"],
    ["name: 5", "1:7: name must be text"],
    ["name: &x a\nservice: *x", "2:10: service must be text"],
    ["name: !!binary YQ==", "1:16: name must be text"],
    ["authorization: yes", "1:16: authorization must be true or false"],
    ["workers: 2", "1:10: workers must have min and max"],
    ["workers: {min: 2, max: 1}", "1:16: workers.min is more than workers.max"],
    ["workers: {max: 0}", "1:16: workers.max must be a whole number from 1 to 100"],
    ["workers: {most: 2}", '1:11: "most" is not a key; there are min, max'],
    ["memory: 512", "1:9: memory must be from 64Mi to 64Gi"],
    ["memory: [1]", "1:9: memory must be from 64Mi to 64Gi"],
    ["queue_time: 2h", "1:13: queue_time must be a duration from 0s to 1h"],
    ["retention: 366d", "1:12: retention must be a duration from 1s to 365d"],
    ["ready_timeout: 25h", "1:16: ready_timeout must be a duration from 1s to 24h"],
    ["models: [qwen]", "1:9: models must have names with sources, such as qwen: hf://"],
    ["models: {a b: hf://a/b}", '1:15: "a b" must be letters, digits, - and _'],
    ["models: {a: ftp://b}", "1:13: a must be hf://OWNER/NAME, s3://BUCKET"],
    ["models: {a: {source: hf://a/b}}", "1:13: a must have a token: a name of secrets"],
    ["models: {a: {token: hf_abc}}", "1:21: a.token must be the name of a secret"],
    ["models: {a: {secret: X}}", '1:14: "secret" is not a key; there are source, token'],
    ["processes: 1001", "1:12: processes must be a whole number from 0 to 1000"],
    ["gpus: 17", "1:7: gpus must be a whole number from 0 to 16"],
    ["gpus: 1.5", "1:7: gpus must be a whole number from 0 to 16, or a part of one GPU"],
    ["gpus: 0.125", "1:7: gpus must be a whole number from 0 to 16, or a part of one GPU"],
    ["gpu: 0.5", "1:1: "],
    ["gpu_memory: 20", "1:13: gpu_memory must be from 1Mi to 1024Gi, such as 20Gi, or 0"],
    ["processes: many", "1:12: processes must be a whole number from 0 to 1000"],
    ["retention: 0.5s", "1:12: retention must be a duration from 1s to 365d"],
    ["network: lan", "1:10: network must be none, open, or allow: with hosts"],
    ["network: [none]", "1:10: network must be none, open, or allow: with hosts"],
    ["requires: gpu", '1:11: requires must have labels with their values, such as gpu: "*"'],
    ["requires: {gpu: a b}", "1:17: requires.gpu must have a value of letters"],
    ["requires: {a b: c}", "1:17: requires.a b must have a name"],
    ["place: there", "1:8: place must be local, remote or any"],
    ["cpu: -1", "1:6: cpu must be a number from 0.1 to 64"],
    ["env: [A]", "1:6: env must have names with their values"],
    ["env:\n  A: true", "2:6: env.A must be text: put it in quotes"],
    ["env:\n  A-B: c", '2:8: env: "A-B" is no name of a variable'],
    ["env:\n  A: [b]", "2:6: env.A must be text"],
    [
      "secrets:\n  KEY: value",
      "2:3: secrets must be a list of names; values are given by --secret",
    ],
    ["secrets: [a b]", "1:11: each of secrets must be a name"],
    ["include: models", "1:10: include must be a list"],
  ])("refuses %j, with its line", (text, message) => {
    expect(() => parseTesseraFile(text, "tessera.yaml")).toThrow(
      expect.objectContaining({
        message: expect.stringContaining(`tessera.yaml:${message}`),
        exitCode: 2,
      }),
    );
  });

  it("is told when it cannot be read", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tessera-test-yaml-"));
    try {
      await expect(readTesseraFile(join(folder, "none"))).rejects.toThrow(/none does not exist$/);
      await expect(readTesseraFile(folder)).rejects.toThrow(/cannot be read: EISDIR$/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
